"""Citations are numbered in order of first use."""

from bythebook.answer.check import Supported
from bythebook.answer.cite import Citations
from tests.samples import hit


def test_numbers_follow_first_use_and_a_place_keeps_its_number() -> None:
    one, two = hit("One.", section="A"), hit("Two.", section="B")
    citations = Citations()
    cited = [
        citations.cite(Supported("One.", one, "One.")),
        citations.cite(Supported("Two.", two, "Two.")),
        citations.cite(Supported("One again.", one, "One.")),
    ]
    assert [sentence.citations for sentence, _, _ in cited] == [(1,), (2,), (1,)]
    assert [new for _, _, new in cited] == [True, True, False]


def test_a_citation_opens_its_section() -> None:
    _, citation, _ = Citations().cite(Supported("One.", hit("One.", section="Kites"), "One."))
    assert citation.url == "/docs/a#kites"
    assert citation.quote == "One."
