"""Blocks of a passage, and runs of its units."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.runs import blocks_of, is_header, quote_run
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


def _cited(text: str, units: list[int] | None = None) -> list[tuple[str, str]]:
    """Return the quotes of a run, each with the text that it is cited for."""
    found = hit(text)
    run = units if units is not None else list(range(len(found.passage.units)))
    cited, shown = [], ""
    for sentence in quote_run(found, run):
        shown += sentence.lead + sentence.text
        if sentence.closes:
            cited.append((sentence.quote, shown.strip()))
            shown = ""
    assert not shown
    return cited


def _sentence(name: str, words: int) -> str:
    return f"{name} {'kite ' * (words - 1)}flies."


def test_short_run_has_one_quote() -> None:
    text = "One. Two.\n\nThree:\n\n- a\n- b"
    assert _cited(text) == [(text, text)]


def test_last_item_of_a_long_list_is_in_the_quote_that_it_cites() -> None:
    items = [_sentence(f"Item {number}", 20) for number in range(8)]
    cited = _cited("The steps are these:\n\n" + "\n".join(f"- {item}" for item in items))
    assert len(cited) == 2
    assert items[-1] in cited[-1][0]
    assert items[-1] in cited[-1][1]


def test_quotes_end_between_paragraphs_and_not_after_a_lead_in() -> None:
    one, two = _sentence("One", 60), _sentence("Two", 20)
    items = "\n".join(f"- {_sentence(str(number), 15)}" for number in range(4))
    cited = _cited(f"{one}\n\n{two} Here they are:\n\n{items}")
    assert [quote for quote, _ in cited] == [one, f"{two} Here they are:\n\n{items}"]


def test_quote_of_a_formula_has_the_sentence_before_it() -> None:
    cited = _cited(f"{_sentence('One', 80)} {_sentence('Two', 15)} It is\n\n$$\nx = y\n$$")
    assert cited[-1][0].endswith("It is\n\n$$\nx = y\n$$")


def test_long_code_is_quoted_whole_with_its_titles() -> None:
    code = "```sh\n" + "run the kite\n" * 60 + "```"
    ((quote, _),) = _cited(f"Run this:\n\nkite.sh\n\n{code}")
    assert quote == f"Run this:\n\nkite.sh\n\n{code}"


def test_rows_apart_have_quotes_of_their_own() -> None:
    table = "| a | b |\n|---|---|\n| c | d |\n| e | f |\n| g | h |"
    assert _cited(table, [0, 1, 3]) == [
        ("a | b |\n|---|---|\n| c | d", "| a | b |\n|---|---|\n| c | d |"),
        ("g | h", "| g | h |"),
    ]


def test_header_is_shown_above_rows_of_which_each_has_a_quote() -> None:
    table = "| a | b |\n|---|---|\n| c | d |\n| e | f |\n| g | h |"
    assert _cited(f"They are these:\n\n{table}", [0, 1, 3, 4]) == [
        ("They are these:", "They are these:"),
        ("e | f |\n| g | h", "| a | b |\n|---|---|\n| e | f |\n| g | h |"),
    ]


_LONG_LINES = st.one_of(
    _LINES,
    st.integers(1, 120).map(lambda words: _sentence("A", words)),
    st.lists(st.integers(1, 40), min_size=1, max_size=12).map(
        lambda sizes: "\n".join(f"- {_sentence(str(at), n)}" for at, n in enumerate(sizes))
    ),
    st.integers(1, 60).map(lambda rows: "| a | b |\n|---|---|\n" + "| some | cell |\n" * rows),
)


@given(st.lists(_LONG_LINES, max_size=8), st.data())
def test_every_unit_shown_is_in_the_quote_of_the_marker_after_it(
    lines: list[str], data: st.DataObject
) -> None:
    found = hit("\n\n".join(lines)).passage
    if not found.units:
        return
    units = sorted(data.draw(st.sets(st.integers(0, len(found.units) - 1), min_size=1)))
    cited = _cited(found.text, units)
    for quote, shown in cited:
        assert quote in found.text
        words = " ".join(quote.replace("|", " ").split())
        for line in shown.split("\n"):
            if not any(char.isalnum() for char in line) or line == "| a | b |":
                continue  # the layout of a table is not quoted with rows further below
            bare = line.removeprefix("- ").removeprefix("2. ").replace("|", " ")
            assert line in found.text
            assert " ".join(bare.split()) in words
    own = [found.unit_text(found.units[unit]) for unit in units if not is_header(found, unit)]
    texts = [text for text in own if any(char.isalnum() for char in text)]
    assert all(any(text in quote for quote, _ in cited) for text in texts)
    long = [quote for quote, _ in cited if len(quote) > 500]
    assert all(any(text in quote and len(text) > 500 for text in own) for quote in long)
