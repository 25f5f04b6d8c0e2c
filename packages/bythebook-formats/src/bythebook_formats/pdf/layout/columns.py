"""Reading order of a page: columns, and what spans them.

A gutter is looked for at every left edge that several lines share. Lines that cross it divide the
page into bands; a band with lines on both sides is read column by column, if the file has the lines
of one side before those of the other, or if the lines are as long as those of running text: the
cells of a table are neither.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from bythebook_formats.pdf.layout.segments import Segment

_FEWEST_LINES = 3
_FEWEST_LETTERS = 14  # of a typical line in a column
_NARROWEST = 0.2  # of the width of the text
_FILLED = 0.55  # of its column's width that a typical line takes; cells of a table take less
_FEWEST_CHANGES = 0.2  # of the lines of a side, from one side to the other
_GUTTER = 4.0  # points
_TOLERANCE = 2.5  # points
_MOST_CANDIDATES = 12
_DEEPEST = 3


@dataclass(slots=True)
class _Band:
    """Segments between two lines that cross the gutter."""

    left: list[Segment]
    right: list[Segment]
    across: list[Segment]  # the line that ends the band


def regions_of(segments: Sequence[Segment], depth: int = 0) -> list[list[Segment]]:
    """Return the columns and bands of a page in reading order."""
    if depth >= _DEEPEST or len(segments) < 2 * _FEWEST_LINES:
        return [list(segments)] if segments else []
    found = (_bands(segments, edge) for edge in _edges(segments))
    best = max(found, key=_lines_in_columns, default=[])
    if not _lines_in_columns(best):
        return [list(segments)]
    regions: list[list[Segment]] = []
    whole: list[Segment] = []
    for band in best:
        is_short = depth == 0 and band.left and band.right and _are_in_turn(band)
        if is_short or _is_in_columns(band):
            if whole:
                regions.append(whole)
            regions += regions_of(band.left, depth + 1) + regions_of(band.right, depth + 1)
            whole = list(band.across)
        else:
            whole += [*band.left, *band.right, *band.across]
    return [*regions, whole] if whole else regions


def _edges(segments: Sequence[Segment]) -> Iterator[float]:
    """Yield the left edges of a possible second column, those of most lines first."""
    lefts = sorted(segment.left for segment in segments)
    groups: list[list[float]] = []
    for left in lefts:
        if groups and left - groups[-1][0] <= _TOLERANCE:
            groups[-1].append(left)
        else:
            groups.append([left])
    shared = [group for group in groups[1:] if len(group) >= _FEWEST_LINES]
    shared.sort(key=len, reverse=True)
    return (group[0] for group in shared[:_MOST_CANDIDATES])


def _bands(segments: Sequence[Segment], edge: float) -> list[_Band]:
    bands = [_Band([], [], [])]
    for segment in sorted(segments, key=lambda segment: -segment.base):
        if segment.right <= edge - _GUTTER:
            bands[-1].left.append(segment)
        elif segment.left >= edge - 1:
            bands[-1].right.append(segment)
        else:
            bands[-1].across.append(segment)
            bands.append(_Band([], [], []))
    return bands


def _lines_in_columns(bands: Sequence[_Band]) -> int:
    return sum(len(band.left) + len(band.right) for band in bands if _is_in_columns(band))


def _is_in_columns(band: _Band) -> bool:
    sides = band.left, band.right
    if min(map(len, sides)) < _FEWEST_LINES:
        return False
    lefts = [min(segment.left for segment in side) for side in sides]
    rights = [max(segment.right for segment in side) for side in sides]
    widths = [right - left for left, right in zip(lefts, rights, strict=True)]
    if min(widths) < max(_NARROWEST * (rights[1] - lefts[0]), 0.4 * max(widths)):
        return False
    tops = [max(segment.base for segment in side) for side in sides]
    bottoms = [min(segment.base for segment in side) for side in sides]
    beside = min(tops) - max(bottoms)
    if beside < 0.5 * min(top - bottom for top, bottom in zip(tops, bottoms, strict=True)):
        return False
    if _are_in_turn(band):
        return True
    return all(_is_prose(side, width) for side, width in zip(sides, widths, strict=True))


def _are_in_turn(band: _Band) -> bool:
    """Return whether the file has one side after the other, not line by line."""
    sides = [(segment.words[0].at, 0) for segment in band.left]
    sides += [(segment.words[0].at, 1) for segment in band.right]
    sides.sort()
    changes = sum(before[1] != after[1] for before, after in itertools.pairwise(sides))
    return changes <= max(1, _FEWEST_CHANGES * min(len(band.left), len(band.right)))


def _is_prose(segments: Sequence[Segment], width: float) -> bool:
    filled = median(segment.width for segment in segments)
    letters = median(sum(len(word.text) for word in segment.words) for segment in segments)
    return filled >= _FILLED * width and letters >= _FEWEST_LETTERS
