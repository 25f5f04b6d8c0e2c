"""Blocks of a passage, and runs of its units."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.runs import blocks_of, quote_run
from tests.support.samples import hit, passage

_LINES = st.sampled_from(
    (
        "A sentence. And another one.",
        "A lead-in:",
        "- an item",
        "2. a step",
        "| a | b |\n|---|---|\n| c | d |",
        "```sh\nrun it\n```",
        "$$\nx = y\n$$",
        "Label",
        "",
    )
)


def _blocks(text: str) -> list[str]:
    found = passage(text)
    return [
        found.text[found.units[block[0]].start : found.units[block[-1]].end]
        for block in blocks_of(found)
    ]


def test_paragraphs_are_blocks() -> None:
    assert _blocks("One. Two.\n\nThree.") == ["One. Two.", "Three."]


def test_list_belongs_to_its_lead_in() -> None:
    assert _blocks("Before it.\n\nThree of them:\n\n- a\n- b\n\nAfter it.") == [
        "Before it.",
        "Three of them:\n\n- a\n- b",
        "After it.",
    ]


def test_code_and_formulas_belong_to_what_introduces_them() -> None:
    text = "Run the node.\n\n```sh\nrun node\n```\n\nThe rule is this.\n\n$$\nx\n$$"
    assert len(_blocks(text)) == 2


def test_code_about_something_else_is_a_block_of_its_own() -> None:
    assert len(_blocks("Run the node.\n\n```sh\nobey me\n```")) == 2


def test_title_of_a_note_belongs_to_the_note() -> None:
    assert len(_blocks("Info — A title\n\nThe text of the note.")) == 1


@given(st.lists(_LINES, max_size=12))
def test_blocks_are_all_units_in_order(lines: list[str]) -> None:
    found = passage("\n\n".join(lines))
    units = [unit for block in blocks_of(found) for unit in block]
    assert units == list(range(len(found.units)))


@given(st.lists(_LINES, max_size=12), st.data())
def test_every_run_is_quoted_verbatim_and_closed_once(
    lines: list[str], data: st.DataObject
) -> None:
    found = hit("\n\n".join(lines))
    if not found.passage.units:
        return
    units = st.sets(st.integers(0, len(found.passage.units) - 1), min_size=1)
    sentences = list(quote_run(found, sorted(data.draw(units))))
    assert [sentence.closes for sentence in sentences] == [False] * (len(sentences) - 1) + [True]
    lines_shown = [line for sentence in sentences for line in sentence.text.split("\n")]
    assert all(line in found.passage.text for line in lines_shown)
    assert all(sentence.quote in found.passage.text for sentence in sentences)
    assert len({sentence.quote for sentence in sentences}) == 1
