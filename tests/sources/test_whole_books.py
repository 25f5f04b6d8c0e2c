"""Whole books: no word is lost, no markup is left, code blocks are unchanged.

``books/workshop`` is plain Markdown as people write it, ``books/features`` uses what MDX adds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from bythebook.ingestion.read_book import ParsedBook, ParsedPage, read_book
from bythebook.language.text import words
from bythebook.types import UnitKind
from tests.support.samples import FEATURES, SAMPLE_BOOK, WORKSHOP

BOOKS = {
    "workshop": WORKSHOP,
    "features": FEATURES,
    "sample": SAMPLE_BOOK / "docs",
}
FENCE = re.compile(r"( *)(`{3,}|~{3,})([^`\n]*)\Z")
CODE = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1$", re.M | re.S)
CODE_INSIDE = re.compile(r"^(`{3,})[^`\n]*\n(.*?)\n\1$", re.M | re.S)
COMPONENT = re.compile(r"<CodeBlock\b[^<>`]*>\s*\{`([^`]*)`\}")
JUNK = re.compile(
    r"^(?:import [\w{*].*? from ['\"]|export (?:const|default|function) "
    r"|:::|\{/\*|</?[A-Z]\w+[ >])",
    re.M,
)


@cache
def book(name: str) -> ParsedBook:
    return read_book(BOOKS[name])


@pytest.fixture(params=BOOKS)
def whole(request: pytest.FixtureRequest) -> ParsedBook:
    return book(request.param)


def test_every_visible_word_is_in_some_passage(whole: ParsedBook) -> None:
    assert {page.file: page.missing for page in whole.pages if page.missing} == {}
    assert whole.coverage == 1.0
    assert not any(problem.fatal for problem in whole.problems)


def test_passages_contain_no_markup(whole: ParsedBook) -> None:
    for passage in whole.passages:
        found = JUNK.search(CODE.sub("", passage.text))
        assert found is None, (passage.place.file, found)


def test_passages_are_within_the_size_limit_and_ids_are_unique(whole: ParsedBook) -> None:
    assert len({passage.id for passage in whole.passages}) == len(whole.passages)
    for passage in whole.passages:
        is_prose = all(unit.kind is UnitKind.SENTENCE for unit in passage.units)
        assert passage.tokens <= (500 if is_prose else 800), passage.place


def test_units_lie_in_their_passage_and_do_not_overlap(whole: ParsedBook) -> None:
    for passage in whole.passages:
        ends = 0
        for unit in passage.units:
            assert ends <= unit.start < unit.end <= len(passage.text)
            ends = unit.end
        covered = set(words(" ".join(passage.unit_text(unit) for unit in passage.units)))
        left = {word for word in words(passage.text) if not word.isdigit()} - covered
        assert not left, passage.place


def test_passage_anchors_are_headings_of_the_page(whole: ParsedBook) -> None:
    for page in whole.pages:
        anchors = {anchor for _, anchor in page.headings}
        for passage in page.passages:
            _, _, anchor = passage.place.url.partition("#")
            assert not anchor or anchor in anchors


# --- the source itself as a witness ---------------------------------------------------------------


def fences(source: str) -> list[str]:
    """Find the code blocks of a file without a parser, except those that are parsed as MDX."""
    found: list[str] = []
    lines = iter(source.splitlines())
    for line in lines:
        opening = FENCE.match(line)
        if opening is None:
            continue
        indent, mark, info = opening.groups()
        inside: list[str] = []
        for inner in lines:
            bare = inner.strip()
            if bare.startswith(mark) and not bare.strip(mark[0]):
                break
            inside.append(inner[len(indent) :] if inner[: len(indent)].isspace() else inner)
        if "mdx-code-block" in info:
            unwrapped = "\n".join(inside)
            found.extend([*fences(unwrapped), *COMPONENT.findall(unwrapped)])
        elif info.strip() != "math":  # that is a formula
            found.append("\n".join(inside))
    return found


def source_of(name: str, page: ParsedPage) -> str:
    file = BOOKS[name] / page.file
    if page.file.startswith("i18n/"):
        _, locale, rest = page.file.split("/", 2)
        translated = BOOKS[name].parent / "i18n" / locale
        file = translated / "docusaurus-plugin-content-docs" / "current" / rest
    return file.read_text(encoding="utf-8").replace("\u200b", "")


def kept_code(page: ParsedPage, expected: list[str]) -> list[str]:
    """Return the code blocks of the passages in order; split ones are joined."""
    parts = [
        (place, inside)
        for place, passage in enumerate(page.passages)
        for _, inside in CODE_INSIDE.findall(passage.text)
    ]
    whole: list[str] = []
    wanted = set(expected)
    while parts:
        size = 1
        while size < len(parts) and joined(parts[:size]) not in wanted:
            size += 1
        size = size if joined(parts[:size]) in wanted else 1
        holders = [place for place, _ in parts[:size]]
        assert holders == list(range(holders[0], holders[0] + size)), page.file
        whole.append(joined(parts[:size]))
        del parts[:size]
    return whole


def joined(parts: list[tuple[int, str]]) -> str:
    return "\n".join(inside for _, inside in parts)


@pytest.mark.parametrize("name", BOOKS)
def test_code_blocks_are_in_exactly_one_passage_unchanged(name: str) -> None:
    """Compare with the source, in order. Only an over-long block is in several passages, which
    follow each other; components and partials add code of their own.
    """
    count = 0
    for page in book(name).pages:
        expected = fences(source_of(name, page))
        kept = kept_code(page, expected)
        assert [code for code in kept if code in set(expected)] == expected, page.file
        count += len(expected)
    assert count > 0
    assert any(page.file.startswith("i18n/ur/") for page in book(name).pages) == (name == "sample")


MARKUP = re.compile(
    r"\]\([^)\n]*\)|</?(?:details|summary|br|div|p|a|b|i|em|strong|sub|sup|img)\b[^<>]*>|^:::\w*"
    r"|^ *(?:`{3,}|~{3,})[^\n]*",
    re.M,
)


def test_all_source_words_except_markup_are_kept() -> None:
    for page in book("workshop").pages:
        source = (WORKSHOP / page.file).read_text(encoding="utf-8").replace("\u200b", "")
        body = source.partition("\n---\n")[2] if source.startswith("---\n") else source
        kept = " ".join(
            [page.title, *(h for h, _ in page.headings)] + [p.text for p in page.passages]
        )
        known = set(words(kept))
        left = [
            word
            for word in words(MARKUP.sub(" ", unescape(body)))
            if word not in known and word.strip("_") not in kept
        ]
        if page.file == "M2/C1/S1.md":  # GFM does not draw a cell beyond those of the header
            left.remove("surplus")
        assert not left, page.file


# --- size ----------------------------------------------------------------------------------------


READ = """
import sys
from pathlib import Path
from bythebook.ingestion.read_book import read_book

print(len(read_book(Path(sys.argv[1])).pages))
# Not ru_maxrss: a child inherits its parent's.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc of Linux")
def test_large_book_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Read a hundred pages (3 MB) within 300 MB of memory."""
    page = "".join(
        re.sub(r"\A---\n.*?\n---\n", "", file.read_text("utf-8"), flags=re.S)
        for file in sorted(WORKSHOP.rglob("*.md"))
    )
    for number in range(100):
        text = page * (30_000 // len(page) + 1)
        (tmp_path / f"page-{number}.md").write_text(f"# Page {number}\n\n{text}", "utf-8")
    command = [sys.executable, "-c", READ, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pages, peak = output.split()
    assert int(pages) == 100
    assert int(peak) < 300 * 1024
