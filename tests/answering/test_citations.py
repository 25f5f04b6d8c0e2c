"""Citations are numbered in order of first use."""

import re
from dataclasses import replace
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.citations import Citations, deep_link
from bythebook.answering.runs import quotations
from bythebook.grounding.verifier import Supported
from bythebook.text.text_fragments import folded, with_fragments
from bythebook.types import Mark, MarkKind
from tests.support.samples import hit, passage


def test_numbers_follow_first_use_and_equal_quotes_share_one() -> None:
    one, two = hit("One.", section="A"), hit("Two.", section="B")
    citations = Citations()
    cited = [
        citations.cite(Supported("One.", one, "One.")),
        citations.cite(Supported("Two.", two, "Two.")),
        citations.cite(Supported("One again.", one, "One.")),
    ]
    assert [sentence.citations for sentence, _ in cited] == [(1,), (2,), (1,)]
    assert [len(new) for _, new in cited] == [1, 1, 0]


def test_sentences_of_the_book_keep_their_markup() -> None:
    text = "Use `x`.\n\n- See a link\n- b\n\n| c | d |\n|---|---|\n| e | f |"
    marks = (
        *(Mark(4, 7, MarkKind.CODE), Mark(9, 9, MarkKind.INSERTED, "> ")),
        *(Mark(18, 22, MarkKind.LINK, "/b"), Mark(30, 31, MarkKind.STRONG)),
    )
    hit_of = replace(hit(text), passage=replace(passage(text), marks=marks))

    def kept(shown: str) -> tuple[Mark, ...] | None:
        return Citations().cite(Supported(shown, hit_of, text))[0].marks

    assert kept("Use `x`.") == (Mark(4, 7, MarkKind.CODE),)
    assert kept("- See a link\n- b") == (Mark(8, 12, MarkKind.LINK, "/b"),)
    assert kept("| c | d |\n|---|---|\n| e | f |") == (Mark(2, 3, MarkKind.STRONG),)
    assert kept("Words of a model.") is None


def test_citation_links_to_its_section() -> None:
    _, (citation,) = Citations().cite(Supported("One.", hit("One.", section="Kites"), "One."))
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
    assert deep_link(toys, ambiguous).endswith(
        "text=A%20kite%20is%20a%20toy,town%20say%20it%20needs%20strong%20wind"
    )


def test_link_of_a_run_with_an_ambiguous_end_lists_what_is_left() -> None:
    text = "A kite needs wind. Nobody holds it. Let it go now. Let it go now."
    (kites,) = with_fragments([passage(text, section="Kites")])
    assert deep_link(kites, text).endswith(
        ":~:text=A%20kite%20needs%20wind,it%20go%20now&text=now-,Let%20it%20go%20now"
    )
    text = "A kite needs wind. Let it go now. Let it go now. The reel must let it go now."
    (kites,) = with_fragments([passage(text.replace("must let", "must, let"), section="Kites")])
    assert deep_link(kites, kites.text).endswith(
        ":~:text=A%20kite%20needs%20wind,must%2C%20let%20it%20go%20now"
    )


def test_quote_is_found_where_it_is_a_unit() -> None:
    text = "They all need a strong wind.\n\n- need a strong wind\n- need a line"
    (kites,) = with_fragments([passage(text, section="Kites")])
    assert deep_link(kites, "need a strong wind") == "/docs/a#kites"


def test_link_of_a_part_of_an_item_marks_the_item() -> None:
    text = "- One more thing about kites. It needs a strong wind."
    (kites,) = with_fragments([passage(text, section="Kites")])
    assert deep_link(kites, "It needs a strong wind.").endswith(
        ":~:text=One%20more%20thing,a%20strong%20wind"
    )


def test_long_quote_of_several_sentences_is_cited_in_parts() -> None:
    sentences = [f"{number} {'very ' * 60}long." for number in (1, 2, 3)]
    found = hit("\n\n".join(sentences), section="A")
    quote = "\n\n".join(sentences[:2])
    sentence, new = Citations().cite(Supported("Both are long.", found, quote))
    assert sentence.citations == (1, 2)
    assert [citation.quote for citation in new] == sentences[:2]
    _, whole = Citations().cite(Supported("All are long.", found, found.passage.text))
    assert [citation.quote for citation in whole] == [found.passage.text]


def test_long_listing_is_cited_in_parts_that_together_have_all_its_lines() -> None:
    lines = [f"    step_{number}(kite, wind)" for number in range(60)]
    found = hit("\n".join(["```py", *lines, "```"]), section="A")
    sentence, new = Citations().cite(Supported(found.passage.text, found, found.passage.text))
    assert len(new) > 2
    assert sentence.citations == tuple(range(1, len(new) + 1))
    assert all(len(citation.quote) <= 500 for citation in new)
    assert all(citation.quote in found.passage.text for citation in new)
    together = " ".join(citation.quote for citation in new)
    assert together.split() == found.passage.text.split()


_WORDS = st.lists(st.sampled_from(("kite", "wind", "line", "reel", "now", "the")), min_size=1)
_PIECES = st.one_of(
    _WORDS.map(lambda words: f"{' '.join(words).capitalize()}."),
    st.lists(_WORDS, min_size=1, max_size=3).map(
        lambda lines: "\n".join(f"- {' '.join(words)}" for words in lines)
    ),
    st.lists(_WORDS, min_size=2, max_size=4).map(
        lambda lines: " ".join(f"{' '.join(words).capitalize()}." for words in lines)
    ),
)


def _highlighted(link: str, page: str) -> str:
    """Return what a browser marks on a page of these words, for all parts of the fragment."""
    marked = [" "] * len(page)
    for directive in link.partition(":~:")[2].split("&"):
        parts = [folded(unquote(part)) for part in directive.removeprefix("text=").split(",")]
        prefix = f"{parts.pop(0)} " if re.search("[^%]-,", directive) else ""
        begun = page.index(f" {prefix}{parts[0]} ") + len(prefix)
        after = begun + len(parts[0]) + 1
        end = page.index(f" {parts[1]} ", after) + 1 + len(parts[1]) if parts[1:] else after
        marked[begun + 1 : end] = page[begun + 1 : end]
    return "".join(marked)


@given(st.lists(_PIECES, min_size=1, max_size=8), st.data())
def test_a_link_marks_nothing_but_its_quote_and_all_its_findable_units(
    pieces: list[str], data: st.DataObject
) -> None:
    (kites,) = with_fragments([passage("\n\n".join(pieces), section="")])
    units = data.draw(st.sets(st.integers(0, len(kites.units) - 1), min_size=1))
    for group in quotations(kites, sorted(units)):
        own = [kites.units[unit] for unit in group]
        quote = kites.text[own[0].start : own[-1].end]
        if kites.text.count(quote) > 1:
            continue
        link = deep_link(kites, quote)
        if ":~:" not in link:
            assert not any(unit.fragment for unit in own)
            continue
        marked = _highlighted(link, f" title {folded(kites.text)} ")
        assert all(part.strip() in folded(quote) for part in marked.split("  "))
        for unit in own:
            if unit.fragment:
                assert folded(kites.unit_text(unit)) in marked
