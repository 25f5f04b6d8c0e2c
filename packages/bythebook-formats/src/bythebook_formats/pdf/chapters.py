"""Chapters of a PDF file: blocks, and the visible words that they should have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from bythebook.interfaces.blocks import LeftOut
from bythebook.language.text import words as words_of
from bythebook_formats.pdf.blocks import BlockBuilder
from bythebook_formats.pdf.headings import headings_of
from bythebook_formats.pdf.layout.flow import flow_of
from bythebook_formats.pdf.layout.joining import SeenWords, join, visible
from bythebook_formats.pdf.model import PageText, PdfChapter, PdfText, Word

_NO_TITLE = re.compile(
    r"untitled.*|.*\.(?:docx?|dvi|tex|pdf|indd|qxd|odt|rtf)|microsoft word.*|about:blank|-",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_TITLE = 160
_LONGEST_PART = 4000  # characters


def chapters_of(text: PdfText, name: str) -> list[PdfChapter]:
    """Return the chapters in reading order; ``name`` is the title of a file without one."""
    flow = flow_of(text)
    vocabulary = SeenWords(word for page in text.pages for word in page.words if not word.ends_line)
    headings = headings_of(flow.rows, text.outline, vocabulary, flow.body)
    title = _title(text, name)
    chapters = BlockBuilder(flow, headings, vocabulary, title).build()
    _count_words(text, chapters, vocabulary)
    return [chapter for chapter in chapters if chapter.words]


def _title(text: PdfText, name: str) -> str:
    if text.title and not _NO_TITLE.fullmatch(text.title):
        return text.title
    first = next((page for page in text.pages if page.words), None)
    largest = _largest_text(first) if first else ""
    return largest or name


def _largest_text(page: PageText) -> str:
    """Return the first text in the largest type, if it is larger than other text."""
    size = max(word.size for word in page.words)
    later = dropwhile(lambda word: word.size <= 0.97 * size, page.words)
    largest = [word.text for word in takewhile(lambda word: word.size > 0.97 * size, later)]
    title = visible(" ".join(largest))
    is_whole = len(largest) == len(page.words)
    has_letters = any(char.isalpha() for char in title)
    return title if has_letters and not is_whole and len(title) <= _LONGEST_TITLE else ""


def _count_words(text: PdfText, chapters: Sequence[PdfChapter], vocabulary: SeenWords) -> None:
    """Count the visible words of the file, whether or not they are in a block.

    A page that could not be read counts as one with as many words as the others have.
    """
    unread = {*text.scanned, *text.unreadable}
    read = [len(page.words) for page in text.pages if page.words]
    usual = sum(read) // len(read)
    texts: list[list[str]] = [[] for _ in chapters]
    current = 0
    lost: list[list[str]] = [[] for _ in chapters]
    for page in text.pages:
        for words in _lines(page):
            current = current if words[-1].chapter is None else words[-1].chapter
            line = " ".join(word.text for word in words)
            if reason := words[-1].left_out:
                chapters[current].left_out.append(LeftOut(reason, line))
            else:
                texts[current].append(line + "\n" * words[-1].style.mono)
        lost[current] += words_of(" ".join(page.lost))
    lost[current] += [f"(page {number})" for number in sorted(unread) for _ in range(usual)]
    for chapter_texts, missing, found in zip(texts, lost, chapters, strict=True):
        found.words = words_of(_joined(chapter_texts, vocabulary)) + missing


def _lines(page: PageText) -> Iterator[list[Word]]:
    """Yield the lines of PDFium, cut where another chapter or what is left out begins.

    A line of code ends with a line feed, as it is not joined with the next one.
    """
    line: list[Word] = []
    for word in page.words:
        if line and (word.chapter, word.left_out) != (line[-1].chapter, line[-1].left_out):
            yield line
            line = []
        line.append(word)
        if word.ends_line:
            yield line
            line = []
    if line:
        yield line


def _joined(lines: Sequence[str], vocabulary: SeenWords) -> str:
    """Join lines; text is gathered in parts, as appending to a long text takes long."""
    parts: list[str] = []
    for line in lines:
        if parts and not parts[-1].endswith("\n"):
            parts[-1] = join(parts[-1], line, vocabulary)
            if len(parts[-1]) > _LONGEST_PART:
                head, _, last = parts[-1].rpartition(" ")
                parts[-1:] = [head, last] if head else [last + "\n"]
        else:
            parts.append(line)
    return visible("\n".join(parts))
