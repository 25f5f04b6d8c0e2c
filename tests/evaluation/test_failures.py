"""The worst cases, and why."""

from bythebook.evaluation.failures import Fault, worst
from tests.evaluation.cases import answered, refused, unfounded, withheld


def test_each_fault_takes_its_turn_and_the_gravest_comes_first() -> None:
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


def test_why() -> None:
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
