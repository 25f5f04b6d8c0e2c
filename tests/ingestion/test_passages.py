"""Splitting of pages into passages."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.ingestion.passages import MAX_TOKENS, passages_of
from bythebook.ingestion.section_packing import longest
from bythebook.language.text import words
from bythebook.language.tokens import estimate_lines, estimate_tokens, shortened
from bythebook.sources.markdown.mdx import MdxSource, parse
from bythebook.text.section_text import join
from bythebook.text.selections import content_hash, passage_of_selection
from bythebook.types import Metadata, Passage, Place, UnitKind

PLACE = Place("a/b.md", "Title", "/docs/a/b", "Module", "Chapter", ())


def split(text: str, *, max_tokens: int = MAX_TOKENS) -> tuple[Passage, ...]:
    return passages_of(parse(MdxSource.of(text)), PLACE, Metadata(), max_tokens=max_tokens)


def where(text: str) -> list[tuple[tuple[str, ...], str, str]]:
    return [(p.place.section, p.place.url, p.text) for p in split(text)]


# --- sections -------------------------------------------------------------------------------------


def test_text_before_the_first_heading_belongs_to_the_page() -> None:
    assert where("Before.\n\n# Title\n\nUnder.\n\n## A\n\nIn a.") == [
        ((), "/docs/a/b", "Before.\n\nUnder."),
        (("A",), "/docs/a/b#a", "In a."),
    ]


def test_a_title_that_differs_from_the_page_s_own_is_kept_as_text() -> None:
    assert where("# Another title\n\nText.")[0][2] == "Another title\n\nText."


def test_a_heading_followed_by_a_deeper_one_has_no_passage_and_a_lone_one_has() -> None:
    assert where("## A\n\n### B\n\ntext\n\n## C\n") == [
        (("A", "B"), "/docs/a/b#b", "text"),
        (("C",), "/docs/a/b#c", "C"),
    ]


def test_headings_of_all_levels_are_of_the_path() -> None:
    levels = "## A\n\n### B\n\n#### C\n\n##### D\n\ntext\n\n###### E\n\nmore"
    assert where(levels) == [
        (("A", "B", "C", "D"), "/docs/a/b#d", "text"),
        (("A", "B", "C", "D", "E"), "/docs/a/b#e", "more"),
    ]
    gap = "## A\n\n#### B\n\ntext\n\n##### C\n\nmore"
    assert where(gap) == [
        (("A", "B"), "/docs/a/b#b", "text"),
        (("A", "B", "C"), "/docs/a/b#c", "more"),
    ]


def test_a_heading_in_a_box_opens_a_section_that_ends_with_the_box() -> None:
    source = (
        "## A\n\none\n\n<details>\n<summary>More</summary>\n\n### B\n\ntwo\n\n</details>\n\nthree"
    )
    assert where(source) == [
        (("A",), "/docs/a/b#a", "one\n\nMore"),
        (("A", "B"), "/docs/a/b#b", "two"),
        (("A",), "/docs/a/b#a", "three"),
    ]


def test_repeated_headings_have_distinct_anchors() -> None:
    urls = [url for _, url, _ in where("## A\n\nx\n\n## A\n\ny\n")]
    assert urls == ["/docs/a/b#a", "/docs/a/b#a-1"]


# --- sizes ----------------------------------------------------------------------------------------

SENTENCE = "Sentence number {} says that robots move with care. "


def test_long_section_is_split_between_blocks() -> None:
    source = "## A\n\n" + "\n\n".join(SENTENCE.format(n) * 5 for n in range(20))
    passages = split(source)
    assert len(passages) > 1
    assert all(p.tokens <= MAX_TOKENS for p in passages)
    assert "\n\n".join(p.text for p in passages) == source.removeprefix("## A\n\n").strip().replace(
        " \n", "\n"
    )


def test_a_long_paragraph_is_cut_between_sentences_that_overlap_by_one() -> None:
    passages = split("".join(SENTENCE.format(n) for n in range(100)))
    assert len(passages) > 1
    assert all(p.tokens <= MAX_TOKENS for p in passages)
    for before, after in itertools.pairwise(passages):
        last = before.unit_text(before.units[-1])
        assert after.unit_text(after.units[0]) == last


def _code(functions: int) -> str:
    return "\n".join(
        f"def compute_{n}(value: int) -> int:\n    doubled = value * {n}\n\n    return doubled\n"
        for n in range(functions)
    )


def test_code_of_up_to_800_tokens_is_never_cut() -> None:
    code = _code(32)
    assert MAX_TOKENS < estimate_tokens(code) < 800 < estimate_tokens(_code(36))
    for before in ("Text.", SENTENCE.format(1) * 30, ":::note[Boxed]\n\n" + SENTENCE.format(2)):
        passages = split(f"{before}\n\n```py\n{code}\n```\n\nMore.")
        (whole,) = [passage for passage in passages if passage.metadata.has_code]
        assert f"```py\n{code}\n```" in whole.text
        assert whole.continues is None


def test_longer_code_is_cut_between_functions_into_passages_with_its_lead_in() -> None:
    code = _code(150)
    *parts, after = split(f'Text.\n\n```py title="a.py"\n{code}\n```\n\nMore.')
    assert (len(parts), after.text) == (5, "More.")
    assert parts[0].text.startswith("Text.\n\na.py\n```py\ndef ")
    assert all(part.text.startswith("```py\ndef ") for part in parts[1:])
    assert [part.continues for part in parts] == [None, "\n", "\n", "\n", "\n"]
    assert all(MAX_TOKENS / 2 < part.tokens <= 800 for part in parts[:-1])
    assert join(split(f"```py\n{code}\n```")).text == f"```py\n{code}\n```"
    for one, other in itertools.pairwise(parts):
        assert other.id in one.neighbours
        assert one.id in other.neighbours


def test_a_row_too_long_for_a_passage_is_cut_like_prose() -> None:
    long = SENTENCE.format(7) * 100
    passages = split(
        f"| head | value |\n|---|---|\n| short | 1 |\n| long | {long} |\n| last | 2 |\n"
    )
    assert all(passage.tokens <= 800 for passage in passages)
    assert {"short", "long", "last"} <= {word for p in passages for word in words(p.text)}
    heading = split(f"| {long} | value |\n|---|---|\n| a cell | {SENTENCE.format(8) * 60} |\n")
    assert all(passage.tokens <= 800 for passage in heading)
    assert "a cell" in "".join(passage.text for passage in heading)


def test_split_table_repeats_its_header() -> None:
    rows = "\n".join(f"| name {n} | a value that fills some space {n} |" for n in range(120))
    passages = split(f"| head | value |\n|---|---|\n{rows}\n")
    assert len(passages) > 1
    assert all(p.text.startswith("| head | value |\n|---|---|\n| name") for p in passages)
    assert sum(p.text.count("| name") for p in passages) == 120


def test_title_starts_the_passage_of_its_content() -> None:
    filler = SENTENCE.format(1) * 40
    passages = split(f"{filler}\n\n:::note[Boxed]\n\n{SENTENCE.format(2) * 20}\n\n:::\n")
    assert passages[-1].text.startswith("Note — Boxed\n")
    assert "Boxed" not in passages[0].text


def test_text_without_sentences_is_split() -> None:
    for text in ("word " * 3000, "字" * 3000, "x" * 9000):
        assert all(p.tokens <= MAX_TOKENS for p in split(text))


# --- what belongs together ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "announced",
    [
        "```py\n" + _code(6) + "\n```",
        "".join(f"- item {n} of a list that goes on\n" for n in range(12)),
        "| head | value |\n|---|---|\n" + "".join(f"| name {n} | value |\n" for n in range(15)),
        "1. first\n\n   ```py\n   "
        + _code(5).replace("\n", "\n   ")
        + "\n   ```\n\n2. second\n3. third\n",
    ],
)
def test_a_lead_in_is_in_the_passage_of_what_it_announces(announced: str) -> None:
    for sentences in (36, 44):  # the passage would be full within or before what is announced
        paragraph = SENTENCE.format(1) * sentences
        for lead_in in ("Do this:", "It looks as follows.", "**A term**\n\nIs this."):
            before, after = split(f"{paragraph}\n\n{lead_in}\n\n{announced}\n\nMore.")
            assert before.text == paragraph.strip()
            assert after.text.startswith(lead_in.replace("**", ""))
            assert after.tokens <= MAX_TOKENS


def test_a_list_is_longer_than_a_passage_rather_than_cut() -> None:
    items = "".join(f"- item {n} of a list that goes on for longer\n" for n in range(60))
    (whole,) = split(f"These are the items:\n\n{items}")
    assert MAX_TOKENS < whole.tokens <= 800


def test_a_list_is_cut_between_outer_items() -> None:
    inner = "".join(f"  - part {n} of the item goes on\n" for n in range(12))
    *_, last = passages = split("".join(f"- item {n}:\n{inner}" for n in range(12)))
    assert all(passage.text.startswith("- item") for passage in passages)
    assert last.text.count("- item") > 1


def test_the_last_item_of_a_list_never_stands_alone() -> None:
    for count in range(75, 100):
        items = "".join(f"- item {n} of a list that goes on for longer\n" for n in range(count))
        *_, last = split(f"Items:\n\n{items}")
        assert last.text.count("- item") > 1
        assert last.tokens <= 800


@pytest.mark.parametrize(
    ("source", "units"),
    [
        ("It has `x`. `setup` is run, e.g. `y`.", ["It has x.", "setup is run, e.g. y."]),
        ("Run `test -bench=. -v` or `T ? X : Y` now.", ["Run test -bench=. -v or T ? X : Y now."]),
        ("Ask `up?`. If not, use `.`. Go on.", ["Ask up?.", "If not, use ..", "Go on."]),
        ("One.\n\n🪁\n\nTwo 🪁", ["One.", "Two 🪁"]),
        ("1. one\n2. two. `b` too", ["one", "two. b too"]),
    ],
)
def test_units_respect_code_and_are_no_lone_emoji(source: str, units: list[str]) -> None:
    (passage,) = split(source)
    assert [passage.unit_text(unit) for unit in passage.units] == units


# --- identity -------------------------------------------------------------------------------------


def test_ids_are_unique_and_depend_on_file_section_and_text_alone() -> None:
    source = "## A\n\nSame.\n\n## A\n\nSame.\n"
    first, second = split(source)
    assert first.id != second.id
    assert re.fullmatch("[0-9a-f]{64}", first.id)
    assert [p.id for p in split("\r\n\r\n" + source.replace("\n", "\r\n"))] == [first.id, second.id]
    assert first.content_hash == second.content_hash == content_hash("Same.")


def test_passage_source_is_a_span_of_the_file() -> None:
    text = "# Title\n\nIntro.\n\n## A\n\nFirst *para*.\n\nSecond.\n\n## B\n\nThird."
    assert [text[slice(*p.source)].strip() for p in split(text)] == [
        "Intro.",
        "First *para*.\n\nSecond.",
        "Third.",
    ]


def test_passages_with_code_are_marked() -> None:
    plain, code = split("## A\n\n`inline` only\n\n## B\n\n```py\nx\n```\n")
    assert (plain.metadata.has_code, code.metadata.has_code) == (False, True)


# --- a reader's selection -------------------------------------------------------------------------


def test_selection_becomes_a_passage() -> None:
    passage = passage_of_selection("One.\u202e Two\U000e0041.\r\n\r\n- three", url="/docs/x#y")
    assert (passage.id, passage.place.section) == ("selected_text", ("Selected text",))
    assert (passage.place.url, passage.place.title) == ("/docs/x#y", "Selected text")
    assert (passage.place.module, passage.place.chapter) == ("", "")
    assert [passage.unit_text(unit) for unit in passage.units] == ["One.", "Two.", "three"]
    assert passage_of_selection("a b", url=None).place.url == ""


# --- estimates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),  # as all-MiniLM-L6-v2 counts them
    [
        ("The robot moves its arm.", 6),
        ("A robotics workstation is a high-performance computer dedicated to training.", 16),
        ("Proprioception and electromechanical actuators.", 11),
    ],
)
def test_token_estimate_is_rather_high(text: str, pieces: int) -> None:
    assert 0.9 * pieces <= estimate_tokens(text) <= 2 * pieces


PIECE = re.compile(
    r"[A-Za-z]{1,6}|[0-9]{1,3}|[!-/:-@\[-`{-~]|[\u2500-\u259f]{1,4}"
    r"|[\u00c0-\u024f\u0370-\u1fff]{1,2}|\S"
)
CHARS = st.one_of(st.characters(max_codepoint=127), st.sampled_from("aZ09 \n─║éд\u2003—🙂"))


@given(st.lists(st.text(CHARS), max_size=4))
def test_the_estimate_is_the_number_of_pieces(texts: list[str]) -> None:
    text = "\n".join(texts)
    assert estimate_tokens(text) == len(PIECE.findall(text))
    lines = text.split("\n")
    assert estimate_lines(lines) == [len(PIECE.findall(line)) for line in lines]
    assert words(text) == re.findall(r"\w+", text)


@given(st.lists(st.text(CHARS), max_size=40).map(" ".join), st.integers(1, 40))
def test_a_shortened_text_is_its_beginning_in_whole_words(text: str, tokens: int) -> None:
    short = shortened(text, tokens)
    if short == text:
        return
    whole = " ".join(text.split())
    assert whole.startswith(short)
    assert estimate_tokens(short) <= tokens
    assert len(short) <= 4 * tokens
    assert short or not text.strip()


def test_a_text_is_shortened_between_words_where_it_has_any() -> None:
    assert shortened("one two  three four", 3) == "one two"
    assert shortened("one\n\ntwo " + " " * 1000, 3) == "one two"
    assert shortened("w" * 100, 3) == "w" * 12
    assert shortened("水壶" * 100, 3) == "水壶水"
    assert len(shortened("x" * 1000, 100)) < len(shortened("word " * 200, 100))


# --- properties -----------------------------------------------------------------------------------

MARKDOWN = st.lists(
    st.sampled_from(
        [
            "## Heading\n\n",
            "### Sub heading\n\n",
            "A paragraph with *emphasis* and `code`. And a second sentence.\n\n",
            "- item one\n- item two\n  - nested\n\n",
            "1. first\n2. second\n\n",
            "| a | b |\n|---|---|\n| c | d |\n\n",
            "```py\nx = 1\n\n# comment\n```\n\n",
            ":::note[Title]\n\nBody of the note.\n\n:::\n\n",
            "> a quote\n\n",
            "$$\nx^2\n$$\n\n",
            "word " * 300 + "\n\n",
            "<details>\n<summary>Sum</summary>\n\n## Inner\n\nhidden\n\n</details>\n\n",
        ]
    ),
    max_size=25,
).map("".join)


@given(MARKDOWN)
def test_joined_passages_have_every_word_of_the_page(source: str) -> None:
    document = parse(MdxSource.of(source))
    passages = passages_of(document, PLACE, Metadata(), max_tokens=60)
    carried = [word for p in passages for heading in p.place.section for word in words(heading)]
    kept = {word for p in passages for word in words(p.text)} | set(carried)
    assert set(document.words) <= kept
    assert [p.position for p in passages] == list(range(len(passages)))
    assert len({p.id for p in passages}) == len(passages)


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "", "    ", "x = 1", "    return value[0]", " " * 400, "┌───┐", "字" * 30]
        ),
        st.text(CHARS.filter(lambda char: char not in "\n`$" and char.isprintable()), max_size=300),
    ),
    min_size=1,
    max_size=60,
)


@given(LINES, st.sampled_from([("```py", "```"), ("$$", "$$")]), st.sampled_from([40, 100]))
def test_a_block_too_long_for_a_passage_is_joined_byte_for_byte(
    lines: list[str], marks: tuple[str, str], limit: int
) -> None:
    body = "\n".join(["first", *lines, "last"])
    source = f"Before.\n\n{marks[0]}\n{body}\n{marks[1]}\n\nAfter."
    passages = split(source, max_tokens=limit)
    assert all(passage.tokens <= longest(limit) for passage in passages)
    assert all(estimate_tokens(passage.text) == passage.tokens for passage in passages)
    assert all(len(passage.text) <= 10_000 * limit / MAX_TOKENS for passage in passages)
    joined = join(passages)
    assert joined.text == source
    blocks = [unit for unit in joined.units if unit.kind in (UnitKind.CODE, UnitKind.MATHS)]
    assert [unit.continues for unit in blocks] == [False, *[True] * (len(blocks) - 1)]
    first, last = blocks[0].start, blocks[-1].end
    assert joined.text[first:last] == f"{marks[0]}\n{body}\n{marks[1]}"


def test_no_title_or_name_of_a_language_makes_a_passage_too_long() -> None:
    for info in (f'py title="{"word " * 2000}"', "p" * 9000):
        passages = split(f"```{info}\n{_code(40)}\n```")
        assert all(passage.tokens <= 800 for passage in passages)
        assert join(passages).text.endswith(f"{_code(40)}\n```")
    for title in (f":::note[{'word ' * 2000}]\n\n", f"##### {'word ' * 2000}\n\n"):
        passages = split(f"{title}```py\n{_code(30)}\n```")
        assert all(passage.tokens <= 800 for passage in passages)


def test_page_with_only_a_title_gets_one_passage() -> None:
    assert where("# Title") == [((), "/docs/a/b", "Title")]
    assert where("") == []
