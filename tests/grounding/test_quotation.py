"""The book's own words that a sentence rests on."""

from dataclasses import replace

import pytest

from bythebook.grounding.entailment import WordSimilarity
from bythebook.grounding.quotation import Quotation, find_quotations
from bythebook.providers.testing import FakeReader
from bythebook.text.selections import passage_of_selection
from bythebook.text.text_kinds import with_text_kinds
from bythebook.types import Hit
from tests.support.samples import hit

_KITES = "A kite flies because the wind pushes it upwards. Most kites need a tail. Tails add drag."


async def _quote(sentence: str, *hits: Hit) -> list[Quotation]:
    return await find_quotations(sentence, hits, WordSimilarity(None), FakeReader())


def _markdown(text: str, heading: str = "Kites") -> Hit:
    """Return a hit whose units are items and rows as well."""
    found = hit(text, section=heading)
    units = passage_of_selection(text, url=None).units
    return replace(found, passage=with_text_kinds(replace(found.passage, units=units)))


async def test_quotes_the_sentence_that_shares_the_words() -> None:
    (found,) = await _quote("Kites mostly need a tail.", hit(_KITES))
    assert found.text == found.quote == "Most kites need a tail."
    assert found.relevance > 1


async def test_quotes_two_neighbouring_sentences_that_share_more() -> None:
    (found,) = await _quote("Kites need tails, and those tails add drag.", hit(_KITES))
    assert found.text == "Most kites need a tail. Tails add drag."


async def test_a_sentence_that_leans_comes_with_the_one_before() -> None:
    (found, *_) = await _quote("Whistling kettles.", hit("A kettle boils water. It whistles."))
    assert found.text == "A kettle boils water. It whistles."


async def test_words_of_another_passage_are_a_second_quotation() -> None:
    kettle = hit("A kettle boils water.", section="Kettles")
    sentence = "Most kites need tails, while kettles boil water."
    found = await _quote(sentence, hit(_KITES), kettle)
    assert {each.text for each in found} == {
        "A kettle boils water.",
        "Most kites need a tail.",
    }


async def test_rows_come_with_the_header_of_their_table() -> None:
    table = "| Toy | Needs |\n|---|---|\n| Kite | wind |\n| Boat | water |"
    (found, *_) = await _quote("A boat is a toy that needs water.", _markdown(table))
    assert found.text == table
    assert found.quote in table


async def test_items_come_with_the_sentence_that_announces_them() -> None:
    text = "A kite needs three things:\n\n- wind,\n- a long line,\n- a tail."
    (found, *_) = await _quote("It has a long line.", _markdown(text))
    assert found.text.startswith("A kite needs three things:")
    assert "- a long line," in found.text


async def test_a_sentence_comes_with_the_formula_that_completes_it() -> None:
    found = _markdown("The depth of a point is\n\n$$\nZ = f B / d\n$$\n\nA lens has a focus.")
    (quoted, *_) = await _quote("The depth of points is given.", found)
    assert quoted.text == "The depth of a point is\n\n$$\nZ = f B / d\n$$"


async def test_the_source_of_a_diagram_is_not_quoted() -> None:
    found = _markdown("```mermaid\nflowchart LR\n  sensor --> planner\n```")
    assert await _quote("A flowchart shows the steps from the sensor to the planner.", found) == []


async def test_a_list_of_mistakes_is_not_taken_for_advice() -> None:
    text = "- Fly the kite near power lines.\n- Hold the line with bare hands."
    (found,) = await _quote("Fly the kite near power lines.", _markdown(text, "Common mistakes"))
    assert found.text == "Common mistakes:\n\n- Fly the kite near power lines."
    assert found.quote == "Fly the kite near power lines."


@pytest.mark.parametrize("text", ["", "   "])
async def test_there_is_no_quotation_without_text(text: str) -> None:
    assert await _quote("A kite flies.", hit(text)) == []
