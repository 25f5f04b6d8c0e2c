"""Tables: rows whose cells are aligned in columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from bythebook_formats.pdf.layout.joining import SeenWords, has_leader, join_lines
from bythebook_formats.pdf.layout.lists import marker_of
from bythebook_formats.pdf.layout.segments import Segment, TextRow
from bythebook_formats.pdf.model import Word

_WIDE_GAP = 1.0  # of the font size: never within a cell
_NARROW_GAP = 0.42  # of the font size: between cells, if other spaces are narrower
_NARROWER = 1.6
_USUAL_SPACE = 0.26  # of the font size
_ALIGNED = 1.5  # points
_MOST_LEADING = 3  # lines of a cell above the base line of its row
_FARTHEST = 3.5  # of the font size, between rows
_NEAR = 1.45  # of the font size, between lines of a cell
_WIDER = 1.3  # how much wider rows are apart than lines within cells


@dataclass(slots=True)
class TableRows:
    """Rows of a table as they are in the file, from ``start`` to before ``end``."""

    start: int
    end: int
    columns: list[tuple[float, float]]


def cells_of(row: TextRow) -> list[Segment]:
    """Return the parts of a row with gaps between them that are wider than spaces."""
    if row.cells is None:
        row.cells = _cells(row)
    return row.cells


def _cells(row: TextRow) -> list[Segment]:
    words = sorted(row.words, key=lambda word: word.left)
    gaps = [after.left - before.right for before, after in itertools.pairwise(words)]
    narrow = max(_NARROW_GAP * row.size, _NARROWER * _space(gaps, row.size))
    border = min(narrow, _WIDE_GAP * row.size)
    cells = [[words[0]]]
    for word, gap in zip(words[1:], gaps, strict=True):
        if gap > border:
            cells.append([word])
        else:
            cells[-1].append(word)
    return [Segment.of(cell) for cell in cells]


def _space(gaps: Sequence[float], size: float) -> float:
    """Return the usual space within a row; gaps that are surely wider do not count."""
    spaces = sorted(gap for gap in gaps if gap <= 0.7 * size)
    return spaces[len(spaces) // 2] if len(spaces) > 2 else _USUAL_SPACE * size


def find_table(rows: Sequence[TextRow], start: int, stop: int) -> TableRows | None:
    """Return the table that starts at this row, if there is one."""
    for first in range(start, min(start + _MOST_LEADING + 1, stop)):
        if len(cells_of(rows[first])) > 1:
            found = _table_from(rows, first, stop)
            if found is None or _are_leading(rows[start : first + 1], found.columns):
                return found and TableRows(start, found.end, found.columns)
            return None
        if first + 1 < stop and not _is_near(rows[first], rows[first + 1]):
            return None
    return None


def _are_leading(rows: Sequence[TextRow], columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether the rows before the last are in a column other than the first."""
    for row in rows[:-1]:
        touched = _touched(row.left, row.right, columns)
        if not touched or touched[0] == 0 or len(touched) > 1:
            return False
    return True


def _table_from(rows: Sequence[TextRow], first: int, stop: int) -> TableRows | None:
    columns: list[tuple[float, float]] = []
    several, end = 0, first
    for index in range(first, stop):
        row = rows[index]
        if index > first and not _is_below(rows[index - 1], row):
            break
        cells = cells_of(row)
        if not _is_candidate(row, cells):
            break
        grown = _grown(columns, cells)
        if grown is None:
            break
        if len(cells) == 1 and not _is_cell(rows, index, stop, columns):
            break
        columns = grown
        several += len(cells) > 1
        end = index + 1
    while end > first and len(cells_of(rows[end - 1])) == 1 and not _is_near(*rows[end - 2 : end]):
        end -= 1
    if several < 2 or len(columns) < 2:
        return None
    return TableRows(first, end, columns) if _is_aligned(rows[first:end], columns) else None


def _is_aligned(rows: Sequence[TextRow], columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether the columns are apart, or else their cells aligned, unlike those of prose."""
    size = max(row.size for row in rows)
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(columns)]
    if min(gaps) > _WIDE_GAP * size:
        return True
    lines = [cells for row in rows if len(cells := cells_of(row)) > 1]
    if len(lines) < 3 and len(columns) < 3:
        return False
    return all(_share_an_edge(lines, column) for column in columns[1:])


def _share_an_edge(lines: Sequence[Sequence[Segment]], column: tuple[float, float]) -> bool:
    cells = [cell for line in lines for cell in line if _touched(cell.left, cell.right, [column])]
    if not cells:
        return False
    edges = (
        [cell.left for cell in cells],
        [cell.right for cell in cells],
        [(cell.left + cell.right) / 2 for cell in cells],
    )
    return any(_most_are_equal(values) for values in edges)


def _most_are_equal(values: Sequence[float]) -> bool:
    usual = sorted(values)[len(values) // 2]
    return sum(abs(value - usual) <= _ALIGNED for value in values) >= max(2, 0.5 * len(values))


def _is_candidate(row: TextRow, cells: Sequence[Segment]) -> bool:
    if row.mono or has_leader(row.words):
        return False
    return not (len(cells) == 2 and len(cells[0].words) == 1 and marker_of(row.words))


def _is_below(before: TextRow, row: TextRow) -> bool:
    same = (before.page, before.region) == (row.page, row.region)
    return same and before.base - row.base <= _FARTHEST * max(before.size, row.size)


def _is_near(before: TextRow, row: TextRow) -> bool:
    return _is_below(before, row) and before.base - row.base <= _NEAR * max(before.size, row.size)


def _is_cell(
    rows: Sequence[TextRow], index: int, stop: int, columns: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a row with one cell is part of the table: a line of a cell."""
    row = rows[index]
    touched = _touched(row.left, row.right, columns)
    if not touched:
        return row.left > columns[0][1] and _is_near(rows[index - 1], row)
    if len(touched) > 1:
        return False
    if touched[0] > 0 and _is_near(rows[index - 1], row):
        return True
    following = rows[index + 1 : min(index + 3, stop)]
    return bool(following) and any(len(cells_of(other)) > 1 for other in following)


def _touched(left: float, right: float, columns: Sequence[tuple[float, float]]) -> list[int]:
    return [number for number, (start, end) in enumerate(columns) if left < end and right > start]


def _grown(
    columns: Sequence[tuple[float, float]], cells: Sequence[Segment]
) -> list[tuple[float, float]] | None:
    """Return the columns with these cells; None if a cell would join two columns."""
    grown = list(columns)
    for cell in cells:
        touched = _touched(cell.left, cell.right, grown)
        if len(touched) > 1:
            return None
        if touched:
            start, end = grown[touched[0]]
            grown[touched[0]] = min(start, cell.left), max(end, cell.right)
        else:
            grown.append((cell.left, cell.right))
    grown.sort()
    apart = all(before[1] <= after[0] for before, after in itertools.pairwise(grown))
    return grown if apart else None


# --- cells ----------------------------------------------------------------------------------------


def table_cells(
    rows: Sequence[TextRow], columns: Sequence[tuple[float, float]], vocabulary: SeenWords
) -> list[tuple[str, ...]]:
    """Return the texts of the cells; lines of one cell are joined."""
    lines = [_by_column(row, columns) for row in rows]
    groups: list[list[list[list[Word]]]] = []
    for number, line in enumerate(lines):
        if number and _continues(rows, lines, groups[-1], number):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [
        tuple(
            join_lines((line[column] for line in group if line[column]), vocabulary)
            for column in range(len(columns))
        )
        for group in groups
    ]


def _by_column(row: TextRow, columns: Sequence[tuple[float, float]]) -> list[list[Word]]:
    line: list[list[Word]] = [[] for _ in columns]
    for cell in cells_of(row):
        touched = _touched(cell.left, cell.right, columns) or [0]
        line[touched[0]] += cell.words
    return line


def _continues(
    rows: Sequence[TextRow],
    lines: Sequence[list[list[Word]]],
    group: list[list[list[Word]]],
    at: int,
) -> bool:
    """Return whether a line belongs to the row of the lines above it."""
    size = max(rows[at - 1].size, rows[at].size)
    step = rows[at - 1].base - rows[at].base
    if step < 0.9 * size:
        return True  # centred cells overlap
    if step > _narrow_step(rows) * 1.15:
        return False
    line = lines[at]
    next_step = rows[at].base - rows[at + 1].base if at + 1 < len(rows) else step
    if not line[0] and next_step < 0.9 * size:
        return False  # the first line of a centred cell
    if not line[0] or not any(above[0] for above in group):
        return True
    return _has_two_steps(rows) and sum(map(bool, line)) < len(line)


def _steps(rows: Sequence[TextRow]) -> list[float]:
    steps = (before.base - row.base for before, row in itertools.pairwise(rows))
    return [step for step in steps if step >= 0.9 * rows[0].size] or [rows[0].size]


def _narrow_step(rows: Sequence[TextRow]) -> float:
    return min(_steps(rows))


def _has_two_steps(rows: Sequence[TextRow]) -> bool:
    steps = _steps(rows)
    return max(steps) > _WIDER * min(steps)
