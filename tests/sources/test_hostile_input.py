"""Arbitrary text is parsed without exception or lost words, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from bythebook.ingestion.pages import compare_words
from bythebook.ingestion.passages import passages_of
from bythebook.language.text import clean, words
from bythebook.sources.markdown.maths import add_latex_maths
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook.types import Metadata, Passage, Place
from bythebook_formats.jupyter_book.myst import add_jupyter_book
from bythebook_formats.notebook.heading_ids import (
    DocutilsIds,
    MystIds,
    NbconvertIds,
    add_heading_ids,
)
from tests.support.clock import seconds_of

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
    "```{note}\n", ":::{admonition} a\n", "```{list-table}\n", "* - a\n", "  - b\n",
    "```{glossary}\n", "```{code-cell}\n", ":tags: [remove-cell]\n", "```{csv-table} a\n",
    "```{figure} a\n:alt: b\n", "{ref}`", "{math}`", "{cite}`a`", "(a)=\n", "% a\n", "+++\n", ": ",
    "a\n: b\n", "\\begin{align}\n", "\\end{align}", "[](a)", "```{math}\n",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join) | st.text(max_size=200)


MDX, COMMONMARK, LOOSE = (
    ParseOptions(),
    ParseOptions(mdx=False),
    ParseOptions(mdx=False, loose=True),
)


class FreshIds:
    """Heading ids of one page each, for options that many pages share."""

    def assign(self, tokens: Sequence[Token]) -> None:
        for rule in (NbconvertIds(), MystIds(), DocutilsIds(citations=True)):
            rule.assign(tokens)


NOTEBOOK, MYST = (
    replace(LOOSE, plugins=(add, add_heading_ids), maths=maths, env={"heading_ids": FreshIds()})
    for add, maths in ((add_latex_maths, "guess"), (add_jupyter_book, "on"))
)
READINGS = (MDX, COMMONMARK, LOOSE, NOTEBOOK, MYST)


_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}
_LINE_END = re.compile(r"\r\n?")
_NESTED_FENCE = re.compile(r"^(?:[^\S\n]|[>*+:-]|\d+[.)])*(?=`{3}|~{3})", re.M)
_COLONS = re.compile(r":::|^[ \t]*:(?=\s)", re.M)  # of boxes and definitions
_CODE = re.compile(
    r"^((?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*\n(?s:.*?)(?:^(?P=fence)[`~]*[ \t]*$|\Z))", re.M
)


def decidable(text: str) -> str:
    """Return the text without what only a whole grammar can tell from markup.

    Where code in a list, a quotation, a definition or a box ends, and whether markup goes on after
    an empty line or a fence, depends on all that is around and on the flavour. So a fence begins
    a line after an empty one, code has no marks of boxes and definitions, and brackets, quotation
    marks, formulas and comments end in the block in which they begin.
    """
    text = _NESTED_FENCE.sub("\n", clean(_LINE_END.sub("\n", text)))
    text = re.sub(r"(?<=\w)(?=[<{!\[])", " ", text)  # else two words could be one
    text = _CODE.sub(lambda code: _COLONS.sub(".", code[0]), text)
    return "".join(map(_closed, re.split(r"(\n[^\S\n]*(?=\n)|^(?:```|~~~).*)", text, flags=re.M)))


def _closed(block: str) -> str:
    opened: list[str] = []
    for sign in block:
        if sign in _BRACKETS.values():
            opened.append(sign)
        elif sign in _BRACKETS and opened and opened.pop() != _BRACKETS[sign]:
            opened.append(sign)
            break
    raw = ("<!--", "-->"), ("/*", "*/"), ("<style", "</style")
    if opened or any(block.count(start) != block.count(end) for start, end in raw):
        block = re.sub(r"[<{(\[]|/\*", ".", block)
    for mark in ('"', "'", "`", "$$"):
        block = block.replace(mark, ".") if block.count(mark) % 2 else block
    return block


def read(text: str, reading: ParseOptions = MDX) -> tuple[Passage, ...]:
    """Parse and split, and check that no word of the source is missing."""
    passages, _ = _read(text, reading)
    text = decidable(text)
    missing = _read(text, reading)[1]
    assert not missing, (text, missing)
    return passages


def _read(text: str, reading: ParseOptions) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """Return the passages, and the words of the source that these and the headings miss."""
    document = parse(MdxSource.of(text), reading)
    passages = passages_of(document, PLACE, Metadata())
    kept = [word for passage in passages for word in words(passage.text)]
    carried = {heading for passage in passages for heading in passage.place.section}
    kept += [word for heading in document.headings for word in words(heading.text) * 2
             if heading.text in carried]  # fmt: skip
    return passages, compare_words(document.words, kept)[1]


@settings(derandomize=True)  # a count without a parser differs in one text of 20,000
@given(TEXTS, st.sampled_from(READINGS))
@example("- [x] done", MDX)
@example("&#x41 &#x42;", COMMONMARK)
@example("-```\n<td>\n\n```a`\n<td>", LOOSE)
@example("a {b\n} {{}c} {/*d{*/}\n\n- e\n+++f", MDX)
@example("`{n}``` <td> `` `<` ``\n\n`a\nb` <b>", NOTEBOOK)
@example("2*3 a[][](b) c[](()()d) ![](e(f)) http://<img g='h'>", MYST)
@example("- [1]: a\n\n1. (b)=\n\n- %c\n\nd\n: :::e", MYST)
@example("<h3 a='>b'></h3>\n\n# \\{#c}\n\n# \\{/*#d*/}", COMMONMARK)
@example("a[\nb](c) <_d/>\n\n+++`e`", MYST)
@example(":::{\na}\n\n```{``}``{`}`b`}", MDX)
def test_any_text_is_read_without_losing_words(text: str, reading: ParseOptions) -> None:
    for passage in read(text, reading):
        assert passage.text
        for unit in passage.units:
            assert 0 <= unit.start < unit.end <= len(passage.text)


@pytest.mark.slow
def test_heading_id_with_many_spaces_takes_linear_time() -> None:
    def work(spaces: int) -> Callable[[], object]:
        return partial(parse, MdxSource.of("# a" + " " * spaces + "{#x}"))

    small, large = seconds_of(work(20_000)), seconds_of(work(200_000))
    assert large < max(40 * small, 0.5)  # a hundred times as much if it were quadratic


def test_deep_nesting_is_read_completely() -> None:
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
