"""The sample book, printed to PDF by Chromium: words, code and page numbers are kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from markdown_it import MarkdownIt
from tests.support.samples import SAMPLE_BOOK
from tests.web.browser_fixtures import open_browser

from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.language.text import words

pytestmark = pytest.mark.real

_FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
_TITLE = re.compile(r"^title: (.+)$", re.MULTILINE)
_MARGIN = {"top": "2cm", "bottom": "2cm", "left": "2cm", "right": "2cm"}
_STYLES = {
    "one column": "h1 { break-before: page }",
    "two columns": "body { column-count: 2; column-gap: 24px; text-align: justify; hyphens: auto;"
    " font: 11px serif } pre { white-space: pre-wrap; text-align: left }",
}


def _html(style: str) -> tuple[str, list[str]]:
    """Return the book as one HTML page, and the texts of its code blocks."""
    markdown = MarkdownIt("commonmark").enable("table")
    parts: list[str] = []
    code: list[str] = []
    for file in sorted((SAMPLE_BOOK / "docs").rglob("[!_]*.md*")):
        text = file.read_text("utf-8")
        front = _FRONT_MATTER.match(text)
        body = text[front.end() :] if front else text
        title = _TITLE.search(front[1]) if front else None
        heading = f"# {title[1]}\n\n" if title and "\n# " not in f"\n{body}" else ""
        tokens = markdown.parse(heading + body)
        code += [token.content for token in tokens if token.type == "fence"]
        parts.append(markdown.renderer.render(tokens, markdown.options, {}))
    head = f"<!doctype html><html lang=en><title>Physical AI</title><style>{style}</style>"
    return (head + "".join(parts)).replace("<details>", "<details open>"), code


@pytest.fixture(scope="module", params=_STYLES)
def printed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, list[str]]]:
    html, code = _html(_STYLES[request.param])
    file = tmp_path_factory.mktemp("printed") / "book.pdf"
    with open_browser() as browser:
        page = browser.new_page()
        page.set_content(html)
        page.pdf(path=file, outline=True, tagged=True, display_header_footer=True, margin=_MARGIN)
    yield file, code


def test_a_printed_book_keeps_words_code_and_pages(printed: tuple[Path, list[str]]) -> None:
    file, code = printed
    book = read_book(file)
    assert book.problems == ()
    for page in book.pages:
        assert page.covered_words >= 0.995 * page.visible_words, (page.title, page.missing)
    assert len(book.pages) > 10
    assert _lost_code(book, code) == []
    assert _on_other_pages(book, file) == []


def _lost_code(book: ParsedBook, code: list[str]) -> list[str]:
    """Return the code blocks whose lines are not in the book in this order.

    White space is ignored: a line that is too long for the page is wrapped.
    """
    text = _packed("".join(passage.text for passage in book.passages))
    lost = []
    for block in code:
        place = 0
        for line in filter(None, map(_packed, block.splitlines())):
            place = text.find(line, place)
            if place < 0:
                lost.append(line)
                break
    return lost


def _packed(text: str) -> str:
    return "".join(text.replace("```", "").split())


def _on_other_pages(book: ParsedBook, file: Path) -> list[str]:
    """Return passages with words that are neither on the linked page nor on the next one."""
    document = pdfium.PdfDocument(file)
    letters = [_packed(page.get_textpage().get_text_range()) for page in document]
    letters = [re.sub("[\x02\ufffe\xad-]", "", text) for text in letters] + [""]
    document.close()
    wrong = []
    for passage in book.passages:
        number = int(passage.place.url.rpartition("#page=")[2])
        near = letters[number - 1] + letters[number]
        missing = [word for word in words(passage.text) if word not in near]
        if missing:
            wrong.append(f"{passage.place.url}: {Counter(missing)}")
    return wrong
