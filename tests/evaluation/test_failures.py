"""Selection of the worst failures and their reasons."""

from bythebook.evaluation.report import Fault, worst
from tests.evaluation.cases import answered, refused, unfounded, withheld


def test_failures_alternate_between_faults_the_most_confident_first() -> None:
    cases = [
        answered(),
        refused(),
        unfounded(0.7),
        unfounded(0.95),
        answered(0.99, right=False, rank=4),
        withheld(0.4),
        withheld(0.1),
    ]
    failures = worst(cases, 20)
    assert [(f.fault, f.case.confidence) for f in failures] == [
        (Fault.UNFOUNDED, 0.95),
        (Fault.MISSED, 0.99),
        (Fault.WITHHELD, 0.1),
        (Fault.UNFOUNDED, 0.7),
        (Fault.WITHHELD, 0.4),
    ]
    assert len(worst(cases, 2)) == 2


def test_the_reason_of_a_failure() -> None:
    (missed,) = worst([answered(right=False, rank=4)], 1)
    assert (
        missed.why == "The right section has rank 4. The answer cites another section of the page."
    )
    (unfound,) = worst([answered(right=False, rank=None)], 1)
    assert "not among the 10 best passages" in unfound.why
    (kept,) = worst([withheld(0.31)], 1)
    assert kept.why == (
        "Refused because of low relevance. The best passage scored 0.31. "
        "The right section has rank 1."
    )
