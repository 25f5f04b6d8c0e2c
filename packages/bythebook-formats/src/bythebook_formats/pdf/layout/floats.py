"""Figures and tables at the top of a page, within a sentence that goes on below them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bythebook_formats.pdf.layout.segments import TextRow

_CAPTION = re.compile(r"(?:Figure|Fig\.|Table|Listing|Abbildung|Tabelle|Tableau|Figura|Tabla) \d")
_STOPS = (".", "!", "?", ":", ";", ")", "”", '"')
_NEAR = 1.45  # of the font size, between lines of a paragraph
_INDENT = 0.8  # of the font size


def put_floats_later(before: TextRow | None, rows: list[TextRow], body: float) -> list[TextRow]:
    """Return the rows of a page with the paragraph that goes on before the floats above it.

    ``before`` is the last row of the page before.
    """
    if before is None or before.mono or before.text.endswith(_STOPS):
        return rows
    start = _first_that_goes_on(rows, body)
    if not start or not any(_CAPTION.match(row.text) for row in rows[:start]):
        return rows
    end = start + 1
    while end < len(rows) and _is_same_paragraph(rows[end - 1], rows[end]):
        end += 1
    return [*rows[start:end], *rows[:start], *rows[end:]]


def _first_that_goes_on(rows: Sequence[TextRow], body: float) -> int:
    """Return the first row of text that starts in the middle of a sentence; 0: none."""
    if not rows:
        return 0
    left = min(row.left for row in rows)
    right = max(row.right for row in rows if row.region == rows[0].region)
    for index, row in enumerate(rows):
        is_text = not row.mono and abs(row.size - body) <= 0.02 * body
        is_whole = row.left <= left + 1 and row.right >= (left + right) / 2
        is_apart = not index or not _is_same_paragraph(rows[index - 1], row)
        is_caption = _CAPTION.match(row.text) is not None
        if is_text and is_whole and is_apart and not is_caption:
            return index if row.text[:1].islower() and row.region == rows[0].region else 0
    return 0


def _is_same_paragraph(above: TextRow, row: TextRow) -> bool:
    if (above.page, above.region) != (row.page, row.region):
        return False
    is_near = 0 < above.base - row.base <= _NEAR * max(above.size, row.size)
    return is_near and row.left <= above.left + _INDENT * row.size
