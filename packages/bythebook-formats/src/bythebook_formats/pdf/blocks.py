"""Blocks of the chapters: paragraphs, lists, code, tables and headings out of rows."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bythebook.interfaces.blocks import Anchor, Block, Code, Heading, Paragraph, Span, Table
from bythebook_formats.pdf.headings import FoundHeading
from bythebook_formats.pdf.layout.flow import Flow
from bythebook_formats.pdf.layout.joining import (
    HYPHENS,
    SeenWords,
    has_leader,
    join,
    line_text,
    visible,
)
from bythebook_formats.pdf.layout.lists import Item, listings_of, marker_of
from bythebook_formats.pdf.layout.segments import TextRow
from bythebook_formats.pdf.layout.tables import TableRows, find_table, table_cells
from bythebook_formats.pdf.model import PdfChapter, Word

_STOPS = (".", "!", "?", ":", ";", "…", "。", "？", "！", "؟", "۔", "।")
_CLOSING = "\"'”’)]»"
_SAME_SIZE = 0.08
_INDENT = 0.8  # of the font size
_LEVEL = 0.7  # of the font size within which marks of a list are at one level
_FARTHEST_CODE = 3.7  # of the font size, between lines of one listing
_DEEPEST_LEVEL = 6
_WIDEST = 400  # columns of indent or gap that are kept
_MOST_BLANK = 3  # lines


@dataclass(slots=True)
class _Prose:
    """Paragraph while it is read."""

    rows: list[TextRow]
    text: str
    words: list[Word]

    @property
    def last(self) -> TextRow:
        return self.rows[-1]

    @property
    def is_open(self) -> bool:
        """Return whether the last sentence goes on."""
        return not self.text.rstrip(_CLOSING).endswith(_STOPS)


@dataclass(slots=True)
class _List:
    """List while it is read: its outermost items, and the path to the current one."""

    items: list[Item] = field(default_factory=list)
    path: list[Item] = field(default_factory=list)


class BlockBuilder:
    """Reads rows in order, and adds blocks to the current chapter."""

    def __init__(
        self, flow: Flow, headings: Sequence[FoundHeading], vocabulary: SeenWords, title: str
    ) -> None:
        self._flow = flow
        self._rows = flow.rows
        self._vocabulary = vocabulary
        self._headings: dict[int, list[FoundHeading]] = defaultdict(list)
        for heading in headings:
            self._headings[heading.at].append(heading)
        self._borders = [*(heading.at for heading in headings), len(flow.rows)]
        self.chapters = [PdfChapter(title, title, 1, [], [])]
        self._title = title
        self._page = 0
        self._prose: _Prose | None = None
        self._list: _List | None = None

    def build(self) -> list[PdfChapter]:
        index, border = 0, 0
        while index < len(self._rows):
            found = self._headings.pop(index, [])
            for heading in found:
                self._add_heading(heading)
            if found and found[-1].rows:
                index += found[-1].rows
                continue
            while self._borders[border] <= index:
                border += 1
            index = self._read(index, self._borders[border])
        self._close()
        self._add_notes(upto=None)
        return self.chapters

    # --- parts of a page: each method returns the row after what it has read

    def _read(self, index: int, stop: int) -> int:
        row = self._rows[index]
        if self._flow.is_code(row) and not self._is_within_prose(index, stop):
            return self._add_code(index, stop)
        if not self._flow.is_code(row) and (table := find_table(self._rows, index, stop)):
            return self._add_table(table)
        marker = marker_of(row.words)
        if marker and self._starts_item(row):
            self._add_item(row)
        else:
            self._add_text(row)
        return index + 1

    def _add_heading(self, found: FoundHeading) -> None:
        self._close()
        rows = self._rows[found.at : found.at + found.rows]
        row = self._rows[found.at]
        if found.is_chapter:
            self._add_notes(upto=row.page)
            module = found.module or self._title
            self.chapters.append(PdfChapter(found.title, module, row.page, [], []))
            self._page = 0
        words = [word for each in rows for word in each.words]
        span = self._take(words) if words else (row.words[0].at, row.words[0].at)
        self._begin(row.page)
        level = min(found.level, _DEEPEST_LEVEL)
        self._blocks.append(Heading(level, found.title, f"page={row.page}", span))
        if found.is_chapter:
            self._blocks.append(Anchor(f"page={row.page}", span))

    def _add_code(self, index: int, stop: int) -> int:
        self._close()
        end = index + 1
        while end < stop and self._is_same_listing(self._rows[end - 1], self._rows[end]):
            end += 1
        rows = self._rows[index:end]
        self._begin(rows[0].page)
        span = self._take([word for row in rows for word in row.words])
        self._blocks.append(Code("", "", code_text(rows), span))
        return end

    def _is_same_listing(self, above: TextRow, row: TextRow) -> bool:
        if not self._flow.is_code(row) or (above.page, above.region) != (row.page, row.region):
            return False
        return above.base - row.base <= _FARTHEST_CODE * max(above.size, row.size)

    def _is_within_prose(self, index: int, stop: int) -> bool:
        """Return whether a line of code alone is part of a sentence, or the term of an entry."""
        row = self._rows[index]
        below = self._rows[index + 1] if index + 1 < stop else None
        if below is not None and self._is_same_listing(row, below):
            return False
        if below is not None and self._flow.is_near(row, below):
            is_term = below.left > row.left + _INDENT * row.size
            return is_term or below.text[:1].islower()
        prose = self._prose
        return prose is not None and prose.is_open and self._flow.is_near(prose.last, row)

    def _add_table(self, table: TableRows) -> int:
        self._close()
        rows = self._rows[table.start : table.end]
        self._begin(rows[0].page)
        header, *cells = table_cells(rows, table.columns, self._vocabulary)
        span = self._take([word for row in rows for word in row.words])
        self._blocks.append(Table(header, tuple(cells), span))
        return table.end

    # --- lists

    def _starts_item(self, row: TextRow) -> bool:
        """Return whether the mark at the start of a line is one: a number may be part of a text."""
        if self._prose is None or not self._flow.is_near(self._prose.last, row):
            return True
        marker, above = marker_of(row.words), self._prose.last
        assert marker is not None
        if marker.number is None and not marker.is_text and row.words[0].text not in "–—-*":
            return True
        if self._list is not None:
            known = self._list.path[-1].marker if self._list.path else None
            return known is None or known.number is None or marker.number == known.number + 1
        return not self._prose.is_open or row.left > above.left + _INDENT * row.size

    def _add_item(self, row: TextRow) -> None:
        marker = marker_of(row.words)
        assert marker is not None
        self._close_prose()
        if self._list is None or row.page != self._page:
            self._close()
            self._begin(row.page)
            self._list = _List()
        words = row.words
        shown = words if marker.is_text else words[1:]
        item = Item(row.left, words[1].left, marker, (words[0].at, words[-1].end))
        path = self._list.path
        while path and path[-1].left > row.left + _LEVEL * row.size:
            path.pop()
        if path and path[-1].left >= row.left - _LEVEL * row.size:
            path.pop()
        (path[-1].below if path else self._list.items).append(item)
        path.append(item)
        self._take(words[:1])
        self._prose = _Prose([row], line_text(shown), list(shown))

    def _is_in_item(self, row: TextRow) -> bool:
        """Return whether a new paragraph belongs to the current item of the list."""
        if self._list is None or not self._list.path or row.page != self._page:
            return False
        return row.left >= self._list.path[-1].text_left - 0.3 * row.size

    # --- paragraphs

    def _add_text(self, row: TextRow) -> None:
        prose = self._prose
        if prose is not None and self._goes_on(prose, row):
            text = line_text(row.words)
            if self._keeps_break(prose, row):
                prose.text = f"{prose.text}\n{text}"
            else:
                prose.text = join(prose.text, text, self._vocabulary)
            prose.rows.append(row)
            prose.words += row.words
            return
        self._close_prose()
        if not self._is_in_item(row):
            self._close()
            self._begin(row.page)
        self._prose = _Prose([row], line_text(row.words), list(row.words))

    def _goes_on(self, prose: _Prose, row: TextRow) -> bool:
        above = prose.last
        if abs(above.size - row.size) > _SAME_SIZE * max(above.size, row.size):
            return False
        if (above.page, above.region) != (row.page, row.region):
            return self._goes_on_elsewhere(prose, row)
        if not self._flow.is_near(above, row) or prose.text.endswith(HYPHENS):
            return self._flow.is_near(above, row)
        if self._list is not None and self._list.path:
            return self._goes_on_in_item(prose, row)
        if row.left > above.left + _INDENT * row.size:  # a first line, or all lines but the first
            is_hanging = prose.is_open and not self._is_short(above, row)
            return len(prose.rows) == 1 and (is_hanging or self._is_term(above, row))
        return not (self._is_short(above, row) and not prose.is_open)

    def _goes_on_in_item(self, prose: _Prose, row: TextRow) -> bool:
        assert self._list is not None
        item = self._list.path[-1]
        if row.left >= item.text_left - 0.6 * row.size:
            return not (self._is_short(prose.last, row) and not prose.is_open)
        return prose.is_open and not self._is_short(prose.last, row)

    def _goes_on_elsewhere(self, prose: _Prose, row: TextRow) -> bool:
        """Return whether a sentence goes on in the next column or on the next page."""
        above = prose.last
        if not prose.is_open or row.page > above.page + 1:
            return False
        first = row.text.lstrip("\"'“‘(")[:1]
        is_full = above.right >= self._flow.rights[id(above)] - 2 * above.size
        return first.islower() or (is_full and len(prose.rows) > 1)

    def _is_short(self, above: TextRow, row: TextRow) -> bool:
        """Return whether the first word of a line would have fitted on the line above."""
        first = row.words[0]
        room = self._flow.rights[id(above)] - above.right
        return room > (first.right - first.left) + 0.5 * row.size

    def _is_term(self, above: TextRow, row: TextRow) -> bool:
        """Return whether the line above is the term of an indented description."""
        is_indented = row.left > above.left + _INDENT * row.size
        return is_indented and self._is_short(above, row)

    def _keeps_break(self, prose: _Prose, row: TextRow) -> bool:
        """Return whether lines are kept apart: entries of a table of contents, addresses."""
        above = prose.last
        if (above.page, above.region) != (row.page, row.region):
            return False
        if has_leader(above.words) or has_leader(row.words):
            return has_leader(above.words)
        if len(prose.rows) == 1 and self._list is None and self._is_term(above, row):
            return True
        return self._is_short(above, row) and not row.text[:1].islower()

    # --- state

    @property
    def _blocks(self) -> list[Block]:
        return self.chapters[-1].blocks

    def _begin(self, page: int) -> None:
        """Start a block on this page: footnotes of earlier pages come first, then a position."""
        if page != self._page:
            self._add_notes(upto=page)
            self._blocks.append(Anchor(f"page={page}", (0, 0)))
            self._page = page

    def _take(self, words: Sequence[Word]) -> Span:
        """Count words to the chapter, and return their span."""
        chapter = len(self.chapters) - 1
        for word in words:
            word.chapter = chapter
        return min(word.at for word in words), max(word.end for word in words)

    def _close_prose(self) -> None:
        prose, self._prose = self._prose, None
        if prose is None:
            return
        paragraph = Paragraph(visible(prose.text), self._take(prose.words))
        if self._list is not None and self._list.path:
            self._list.path[-1].blocks.append(paragraph)
        else:
            self._blocks.append(paragraph)

    def _close(self) -> None:
        self._close_prose()
        found, self._list = self._list, None
        if found is not None:
            self._blocks.extend(listings_of(found.items))

    def _add_notes(self, upto: int | None) -> None:
        """Add the footnotes of pages before this one."""
        notes = self._flow.notes
        for page in [page for page in sorted(notes) if upto is None or page < upto]:
            rows = notes.pop(page)
            for note in _split_notes(rows):
                text = ""
                for row in note:
                    words = line_text(row.words)
                    text = join(text, words, self._vocabulary) if text else words
                span = self._take([word for row in note for word in row.words])
                self._blocks.append(Paragraph(visible(text), span))


def _split_notes(rows: Sequence[TextRow]) -> list[list[TextRow]]:
    notes: list[list[TextRow]] = []
    for row in rows:
        first = row.words[0].text
        is_mark = len(first) <= 3 and not first[0].isalpha()
        if not notes or (is_mark and _is_mark(first)):
            notes.append([row])
        else:
            notes[-1].append(row)
    return notes


def _is_mark(text: str) -> bool:
    return text.rstrip(".)").isdigit() or not text[0].isalnum()


# --- code -----------------------------------------------------------------------------------------


def code_text(rows: Sequence[TextRow]) -> str:
    """Return the lines of a listing."""
    left = min(row.left for row in rows)
    width = _column_width(rows)
    step = _line_step(rows)
    lines: list[str] = []
    for number, row in enumerate(rows):
        if number and rows[number - 1].page == row.page:
            blank = round((rows[number - 1].base - row.base) / step) - 1
            lines += [""] * max(0, min(blank, _MOST_BLANK))
        lines.append(_line(row, left, width))
    return "\n".join(lines)


def _column_width(rows: Sequence[TextRow]) -> float:
    widths = [
        (word.right - word.left) / len(word.text)
        for row in rows
        for word in row.words
        if word.style.mono and word.text.isascii()
    ]
    width = median(widths) if widths else 0.0
    return width if width > 0.1 else max(0.5 * rows[0].size, 0.1)


def _line_step(rows: Sequence[TextRow]) -> float:
    steps = [
        above.base - row.base
        for above, row in itertools.pairwise(rows)
        if above.page == row.page and above.base - row.base > 0.8 * row.size
    ]
    return min(steps) if steps else 1.2 * rows[0].size


def _line(row: TextRow, left: float, width: float) -> str:
    text = ""
    for word in row.words:
        column = min(round((word.left - left) / width), _WIDEST)
        gap = max(column - len(text), 1 if text else 0)
        text += " " * gap + visible(word.text)
    return text
