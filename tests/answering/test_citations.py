"""Citations are numbered in order of first use."""

from dataclasses import replace

from bythebook.answering.citations import Citations, deep_link
from bythebook.chunking.text_fragments import with_fragments
from bythebook.grounding.verifier import Supported
from tests.support.samples import hit, passage


def test_numbers_follow_first_use_and_equal_quotes_share_one() -> None:
    one, two = hit("One.", section="A"), hit("Two.", section="B")
    citations = Citations()
    cited = [
        citations.cite(Supported("One.", one, "One.")),
        citations.cite(Supported("Two.", two, "Two.")),
        citations.cite(Supported("One again.", one, "One.")),
    ]
    assert [sentence.citations for sentence, _, _ in cited] == [(1,), (2,), (1,)]
    assert [new for _, _, new in cited] == [True, True, False]


def test_citation_links_to_its_section() -> None:
    _, citation, _ = Citations().cite(Supported("One.", hit("One.", section="Kites"), "One."))
    assert citation.url == "/docs/a#kites"
    assert citation.quote == "One."


def test_link_has_a_text_fragment_if_the_unit_has_one() -> None:
    (kites,) = with_fragments([passage("A kite flies. It needs a strong wind.", section="Kites")])
    assert deep_link(kites, "It needs a strong wind.") == (
        "/docs/a#kites:~:text=It%20needs%20a%20strong%20wind"
    )
    assert deep_link(kites, "words of another page") == "/docs/a#kites"
    top = replace(kites, place=replace(kites.place, url="/docs/a"))
    assert deep_link(top, "It needs a strong wind.").startswith("/docs/a#:~:text=It")
    nowhere = replace(kites, place=replace(kites.place, url=""))
    assert deep_link(nowhere, "It needs a strong wind.") == ""


def test_link_of_a_run_marks_it_from_its_first_to_its_last_words() -> None:
    text = "A kite needs a strong wind. The wind lifts it up. Nobody holds it."
    (kites,) = with_fragments([passage(text, section="Kites")])
    assert deep_link(kites, text) == (
        "/docs/a#kites:~:text=A%20kite%20needs%20a%20strong%20wind,Nobody%20holds%20it"
    )
    ambiguous = (
        "A kite is a toy. They say it needs strong wind, and so on. "
        "All the other people of this small town say it needs strong wind."
    )
    (toys,) = with_fragments([passage(ambiguous, section="Kites")])
    assert deep_link(toys, ambiguous).endswith("text=A%20kite%20is%20a%20toy")
