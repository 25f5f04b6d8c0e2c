"""Any text at all: no exception, no hang, nothing lost, and time in proportion to size."""

from __future__ import annotations

import os
import random
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.book.coverage import compare
from bythebook.book.letters import words
from bythebook.book.mdx import Reading, Source, parse
from bythebook.book.passages import passages_of
from bythebook.model import Metadata, Passage, Place
from tests.book.parity_site import PAGES
from tests.clock import seconds_of

PLACE = Place("a.md", "Title", "/docs/a", "M", "C", ())
FRAGMENTS = [
    *"<>{}[]()|`*_~$:#\\!&^=-+.,;'\"/ \t\n\n\n", "```", "````", "$$", ":::", ":::note", ":::tip[",
    "::::", "<div>", "</div>", "<X", "/>", "<T>", "<Tabs>", "<TabItem value='a'>", "</TabItem>",
    "</Tabs>", "<details>", "<summary>", "</summary>", "</details>", "{/*", "*/}", "<!--", "-->",
    "import a from 'b'\n", "export const a = {", "- ", "1. ", "> ", "# ", "## ", "###### ",
    "| a |", "|---|", "[^1]", "[^1]: ", "[a](b)", "![a](b)", "---\n", "===\n", "&amp;", "&#x41;",
    "a", "word", "متن", "字。", "\u200d", "\r\n", "\ufeff", "{#id}", "{props.x}", "`${",
    "mdx-code-block", "<br/>", "<h2>", "</h2>", "<table>", "<tr>", "<td>", "</table>", "    ",
    "http://a.b", "@", "<img alt='x'>", "<head>", "<style>", "'", '"',
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join) | st.text(max_size=200)


MDX, COMMONMARK, LOOSE = Reading(), Reading(mdx=False), Reading(mdx=False, loose=True)
READINGS = (MDX, COMMONMARK, LOOSE)


def read(text: str, reading: Reading = MDX) -> tuple[Passage, ...]:
    """Parse and split, and check that no word the parser saw is missing."""
    document = parse(Source.of(text), reading)
    passages = passages_of(document, PLACE, Metadata())
    kept = [word for passage in passages for word in words(passage.text)]
    carried = {heading for passage in passages for heading in passage.place.section}
    kept += [word for heading in document.headings for word in words(heading.text) * 2
             if heading.text in carried]  # fmt: skip
    missing = compare(document.words, kept)[1]
    assert not missing, (text, missing)
    return passages


@given(TEXTS, st.sampled_from(READINGS))
def test_any_text_can_be_read_and_keeps_its_words(text: str, reading: Reading) -> None:
    for passage in read(text, reading):
        assert passage.text
        for unit in passage.units:
            assert 0 <= unit.start < unit.end <= len(passage.text)


def mutated(source: str, dice: random.Random) -> str:
    pieces = list(source[: dice.randrange(200, 4000)])
    for _ in range(dice.randrange(1, 12)):
        place = dice.randrange(len(pieces) + 1)
        match dice.randrange(4):
            case 0:
                pieces[place:place] = dice.choice(FRAGMENTS)
            case 1:
                del pieces[place : place + dice.randrange(1, 30)]
            case 2:
                start = dice.randrange(len(pieces) + 1)
                pieces[place:place] = pieces[start : start + dice.randrange(1, 60)]
            case _:
                pieces[place:place] = dice.choice(FRAGMENTS) * dice.randrange(1, 40)
    return "".join(pieces)


def test_mutated_pages_are_read_without_an_exception_or_a_hang() -> None:
    """2,000 of them; BYTHEBOOK_FUZZ=20000 for more."""
    seeds = [text for name, text in sorted(PAGES.items()) if name.endswith((".md", ".mdx"))]
    seeds += [file.read_text(encoding="utf-8") for file in _real_pages()]
    dice = random.Random(7)
    for number in range(int(os.environ.get("BYTHEBOOK_FUZZ", "2000"))):
        text = mutated(dice.choice(seeds), dice)
        reading, bar = READINGS[number % 3], 0.25 + 0.05 * len(text) / 1024
        start = time.process_time()
        read(text, reading)
        if time.process_time() - start >= bar:  # the page's own time, or something else's?
            assert seconds_of(partial(read, text, reading), bar=bar) < bar, text


def _real_pages() -> list[Path]:
    data = Path(__file__).parents[3] / "shared" / "data" / "docusaurus-mdx-sample"
    return sorted(data.rglob("*.mdx"))


HOSTILE = [
    "<", "{", "<a ", '<a b="', "<a b={", "$a ", "$$\n", ":::note\n", ">", "> ", "- ", "- a\n", "[",
    "![", "[a](", "*a **b ", "_a_ __", "`a ``b ", "<!-- ", "{/* ", "| a ", "|a|b|\n|-|-|\n",
    "<div>", "<div>\n", "</div>\n", "<details>\n", "<x>", "<X>\n", "```\n", "# a {#",
    "export const a = {\n",
    "{'\\'", "[^1]", "[^1]: a\n", "Mr. A. B. ", "字。", "[a]: b\n", "a\n=\n", "> a\nb\n", "<a\n",
    "<Tabs>\n<TabItem value='a'>\n", "~~a ", "{'a'}", "{`", "`${", "/*", "\u202e", "<tr><td>", "\\",
    "&#", " ", "\t", "\n", "import a from 'b'\n",
]  # fmt: skip


SIZES = (6_000, 60_000)


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("reading", READINGS, ids=["mdx", "commonmark", "loose"])
def test_time_grows_with_size_and_not_faster(pattern: str, reading: Reading) -> None:
    """Ten times the text in twelve times the time, in the calmest of four moments."""
    for _ in range(4):
        small, large = (_seconds(pattern * (size // len(pattern)), reading) for size in SIZES)
        if large <= max(12 * small, 0.4) and large < 0.05 * SIZES[1] / 1024:
            return
    pytest.fail(f"{SIZES[0]} signs took {small:.3f} s, {SIZES[1]} took {large:.3f} s")


def _seconds(text: str, reading: Reading) -> float:
    work = partial(parse, Source.of(text), reading)
    return seconds_of(lambda: passages_of(work(), PLACE, Metadata()), runs=2)


def test_a_heading_with_many_spaces_before_its_id_is_quick() -> None:
    text = "# a" + " " * 200_000 + "{#x}"
    assert seconds_of(lambda: parse(Source.of(text)), bar=0.5) < 0.5


def test_deep_nesting_is_read_to_its_end() -> None:
    for text in (
        "> " * 500 + "deep",
        "- " * 500 + "deep",
        "<div>" * 500 + "deep",
        "*" * 999 + "deep",
    ):
        assert "deep" in read(text)[-1].text
    boxes = ":::note\n" * 300 + "deep"
    assert "deep" in read(boxes)[-1].text
    inside = "| a | b |\n|---|---|\n| c | deep |\n\n<TabItem label='Tab'>\nx\n</TabItem>\n\ndeep"
    divs = "<div>\n\n" * 200 + inside + "\n\n</div>" * 200
    assert "deep" in read(divs)[-1].text
    details = "<details>\n" * 300 + "deep\n" + "</details>\n" * 300
    assert "deep" in read(details)[-1].text
