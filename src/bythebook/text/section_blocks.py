"""Parse the text of a section into blocks: paragraphs, lists, tables, code and maths.

Lines without a blank line between them belong to one block, or to one item of a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

from bythebook.text.section_text import Joined, Marked
from bythebook.text.units import ITEM, is_row, is_rule_row
from bythebook.types import UnitKind

_STOPS = (".", "!", "?", ":", ";", "…", "。", "؟", "۔", "।")
_LONGEST_TITLE = 80  # characters
_MOST_TITLES = 3


@dataclass(frozen=True, slots=True)
class Line:
    start: int  # offset in the section
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Whole:
    """Code or maths."""

    parts: tuple[Marked, ...]  # more than one where it was split into passages
    source: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Table."""

    header: Line | None
    rule: str  # the row below the header
    rows: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraph, or the titles of the block right below it."""

    lines: tuple[Line, ...]
    below: Whole | Rows | Items | None  # without a blank line between them


@dataclass(frozen=True, slots=True)
class Item:
    """List item: its first line, and the blocks and further lines in it."""

    indent: int
    mark: str
    line: Line
    after_blank: bool
    blocks: list[Block] = field(default_factory=list)

    @property
    def number(self) -> int | None:
        """Return its number, or None in a list without an order."""
        return int(self.mark[:-1]) if self.mark[0].isdigit() else None


@dataclass(frozen=True, slots=True)
class Items:
    """List with the lists in it; the indents of the items tell them apart."""

    items: tuple[Item, ...]


Block = Whole | Rows | Items | Prose


def blocks_of(section: Joined) -> Iterator[Block]:
    """Yield the blocks of the section in order."""
    return _Parser(section).blocks()


def are_titles(lines: tuple[Line, ...]) -> bool:
    """Return whether the lines can be titles of what is below them."""
    bare = [line.text.strip() for line in lines]
    return len(bare) <= _MOST_TITLES and all(
        len(text) <= _LONGEST_TITLE and not text.endswith(_STOPS) for text in bare
    )


class _Parser:
    def __init__(self, section: Joined) -> None:
        self._text, self._units = section.text, section.units
        self._unit_starts = [unit.start for unit in section.units]
        whole = (unit for unit in section.units if unit.kind in (UnitKind.CODE, UnitKind.MATHS))
        self._whole_starts = {unit.start for unit in whole}
        texts = section.text.split("\n")
        starts = accumulate((len(text) + 1 for text in texts), initial=0)
        self._lines = [Line(start, text) for start, text in zip(starts, texts, strict=False)]
        self._at = 0

    def blocks(self) -> Iterator[Block]:
        while self._skip_blank():
            yield self._block() or self._prose()

    def _skip_blank(self) -> bool:
        while (line := self._peek()) is not None and not line.text.strip():
            self._at += 1
        return self._at < len(self._lines)

    def _peek(self) -> Line | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    # --- each method consumes the lines of its block

    def _block(self, *, in_item: bool = False) -> Whole | Rows | Items | None:
        """Take the block that starts here; None if it is prose."""
        line = self._lines[self._at]
        if self._starts_whole(line):
            return self._whole(line)
        if is_row(line.text):
            return self._rows()
        return self._items() if ITEM.match(line.text) and not in_item else None

    def _starts_whole(self, line: Line) -> bool:
        return line.end - len(line.text.lstrip()) in self._whole_starts

    def _whole(self, line: Line) -> Whole:
        start = line.end - len(line.text.lstrip())
        first = bisect_right(self._unit_starts, start) - 1
        others = takewhile(lambda unit: unit.continues, self._units[first + 1 :])
        parts = (self._units[first], *others)
        for _ in self._take(lambda line: line.start < parts[-1].end):
            pass
        return Whole(parts, self._text[start : parts[-1].end])

    def _rows(self) -> Rows:
        rows = list(self._take(lambda line: is_row(line.text)))
        has_header = len(rows) > 1 and is_rule_row(rows[1].text)
        body = tuple(row for row in rows[2 * has_header :] if not is_rule_row(row.text))
        if has_header:
            return Rows(rows[0], rows[1].text.strip(), body)
        return Rows(None, "", body)

    def _items(self) -> Items:
        items: list[Item] = []
        after_blank = False
        while (line := self._peek()) is not None:
            found = ITEM.match(line.text)
            if not line.text.strip():
                if not self._goes_on_after_blank():
                    break
                after_blank = True
                continue
            if found:
                words = Line(line.start + found.end(), line.text[found.end() :])
                items.append(Item(len(found[1]), found[2], words, after_blank))
                self._at += 1
            else:
                items[-1].blocks.append(self._block(in_item=True) or self._prose(in_item=True))
            after_blank = False
        return Items(tuple(items))

    def _goes_on_after_blank(self) -> bool:
        self._skip_blank()
        line = self._peek()
        return line is not None and (line.text[0] == " " or ITEM.match(line.text) is not None)

    def _prose(self, *, in_item: bool = False) -> Prose:
        lines = tuple(self._take(self._is_prose))
        following = self._peek()
        if following is None or not following.text.strip():
            return Prose(lines, None)
        return Prose(lines, self._block(in_item=in_item))

    def _is_prose(self, line: Line) -> bool:
        is_other = is_row(line.text) or self._starts_whole(line) or ITEM.match(line.text)
        return bool(line.text.strip()) and not is_other

    def _take(self, wanted: Callable[[Line], object]) -> Iterator[Line]:
        while (line := self._peek()) is not None and wanted(line):
            yield line
            self._at += 1
