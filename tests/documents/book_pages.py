"""Pages of a book that was read from its sources, as Markdown."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from bythebook.documents.markdown.files import write_file
from bythebook.documents.markdown.pages import MarkdownPage, file_names, markdown_page
from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.text.outline import outline, page_key
from bythebook.text.section_text import join
from bythebook.types import Passage, UnitKind


def by_page(book: ParsedBook) -> dict[str, list[Passage]]:
    pages: dict[str, list[Passage]] = {}
    for passage in book.passages:
        pages.setdefault(page_key(passage), []).append(passage)
    return pages


def pages_of(book: ParsedBook, base_url: str = "/") -> list[MarkdownPage]:
    passages = by_page(book)
    named = file_names(outline(book.passages), base_url)
    return [markdown_page(name, page, passages[page.url]) for name, page in named.items()]


def read_again(pages: list[MarkdownPage], folder: Path) -> ParsedBook:
    for page in pages:
        write_file(folder, page.name, page.text)
    return read_book(folder)


def blocks_of(passages: list[Passage]) -> list[str]:
    """Every code and maths block of a page, whole, in reading order."""
    found: list[str] = []
    for _, section in groupby(passages, key=lambda passage: passage.place):
        joined = join(list(section))
        start = 0
        for unit in joined.units:
            if unit.kind in (UnitKind.CODE, UnitKind.MATHS):
                start = start if unit.continues else unit.start
                found[len(found) - unit.continues :] = [joined.text[start : unit.end]]
    return found
