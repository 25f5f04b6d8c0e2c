"""Code: lines in fixed-width type, with their indents, gaps and blank lines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import median

from bythebook_formats.pdf.layout.joining import visible
from bythebook_formats.pdf.layout.segments import TextRow

_WIDEST = 400  # columns of indent or gap that are kept
_MOST_BLANK = 3  # lines


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
