"""The form of the plain text of passages, and the units of a passage.

Only what ``ingestion/render.py`` writes is in it: paragraphs, lists, tables, fenced code, maths
between dollars, and lines that are the title of the block after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from bythebook.language.sentences import split_sentences
from bythebook.language.text import word_set
from bythebook.types import Mark, MarkKind, Unit, UnitKind

ADMONITIONS = word_set("note tip info warning danger caution important success secondary")

# The title of a note: "Warning", or "Warning — Hot surface".
NOTE = re.compile(rf"({'|'.join(sorted(ADMONITIONS))})(?: — .+)?", re.IGNORECASE)
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
ITEM = re.compile(r"([ \t]*)([-*•]|[0-9]{1,9}[.)])[ \t]+")
_RULE_ROW = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_CELL_BORDER = re.compile(r"(?<!\\)\|")

_CHARACTER = re.compile(r".")
_LONG_ITEM = 240  # characters: a longer list item is split into sentences
_BLOCK_SIGNS = frozenset("`~$")


def is_row(line: str) -> bool:
    """Return whether the line is a row of a table."""
    bare = line.strip()
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def is_rule_row(line: str) -> bool:
    """Return whether the line is the row below the header of a table."""
    return _RULE_ROW.fullmatch(line.strip()) is not None


def cells_of(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(row.strip()[1:-1])]


def row_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def closes_fence(line: str, fence: str) -> bool:
    """Return whether the line ends the code that began with this fence."""
    bare = line.strip()
    return bare.startswith(fence) and not bare.strip(fence[0])


def inside_fence(text: str) -> str | None:
    """Return the content of a fenced block, or None if the text is not one."""
    return text.partition("\n")[2].rpartition("\n")[0] if FENCE.match(text) else None


def without_code(text: str, marks: Iterable[Mark]) -> str:
    """Return a text of the same length in which no sentence ends in inline code, but before it."""
    chars = list(text)
    for mark in marks:
        if mark.kind is MarkKind.CODE:
            chars[mark.start : mark.end] = _CHARACTER.sub("字", text[mark.start : mark.end])
    return "".join(chars)


def split_units(text: str, marks: Iterable[Mark] = ()) -> tuple[Unit, ...]:
    """Return the smallest pieces of a passage that can be shown separately, in order."""
    units: list[Unit] = []
    lines = without_code(text, marks).split("\n")
    index = start = 0
    while index < len(lines):
        line = lines[index]
        indent = len(line) - len(line.lstrip())
        last = _block_end(lines, index) if line[indent : indent + 1] in _BLOCK_SIGNS else None
        if last is None:
            units.extend(_line_units(line, start))
            last = index
        else:
            size = sum(map(len, lines[index : last + 1])) + last - index
            kind = UnitKind.MATHS if line[indent] == "$" else UnitKind.CODE
            units.append(Unit(start + indent, start + size, kind))
        start += sum(map(len, lines[index : last + 1])) + last + 1 - index
        index = last + 1
    return tuple(units)


def _block_end(lines: list[str], index: int) -> int | None:
    """Return the last line of the code or maths block that starts here, or None."""
    fence = FENCE.match(lines[index])
    if fence is None and lines[index].strip() != "$$":
        return None
    mark = fence.group(1) if fence else "$$"
    for later in range(index + 1, len(lines)):
        if mark in lines[later] and closes_fence(lines[later], mark):
            return later
    return len(lines) - 1 if fence else None


def _line_units(line: str, start: int) -> Iterator[Unit]:
    """Yield the units of a line whose offset is ``start``."""
    if is_row(line):
        row = line.strip(" \t|")
        if row and not is_rule_row(line):
            first = start + line.index(row)
            yield Unit(first, first + len(row), UnitKind.ROW)
        return
    marker = ITEM.match(line)
    inside = marker.end() if marker else 0
    spans = split_sentences(line[inside:])
    start += inside
    if marker is None:
        kind = UnitKind.SENTENCE
    else:
        kind = UnitKind.ITEM
        if spans and len(line) - inside - spans[0][0] <= _LONG_ITEM:
            spans = [(spans[0][0], spans[-1][1])]
    for first, last in spans:
        yield Unit(start + first, start + last, kind)
