"""Cut passages into windows of word pieces, and choose those worth reading.

A window is a run of whole units (sentences, items, rows) of one passage; a unit that is longer
than a window is cut. Neighbouring windows overlap, so that an answer at a border stays whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bythebook.types import Passage

WINDOW_TOKENS = 128  # of a passage that may support a sentence, without its heading path
_JOINED_UNITS = 3


@dataclass(frozen=True, slots=True)
class TokenizedPassage:
    passage: Passage
    heading: list[int]  # word pieces of the heading path
    ids: list[int]
    offsets: list[tuple[int, int]]  # of each word piece in ``passage.text``

    def units(self) -> list[tuple[int, int]]:
        """Return the range of word pieces of each unit; text between units belongs to none."""
        spans = [(unit.start, unit.end) for unit in self.passage.units]
        if not spans:
            return [(0, len(self.ids))]
        ranges, at = [], 0
        for start, end in spans:
            while at < len(self.ids) and self.offsets[at][1] <= start:
                at += 1
            first = at
            while at < len(self.ids) and self.offsets[at][0] < end:
                at += 1
            ranges.append((first, at))
        return ranges


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """Word pieces of one passage, or of several that are read together."""

    source: TokenizedPassage
    number: int  # index of the passage
    first: int
    last: int
    joined: tuple[int, ...] = ()  # word pieces of other places, read after these

    @property
    def ids(self) -> list[int]:
        return [*self.source.ids[self.first : self.last], *self.joined]


def windows_of(
    source: TokenizedPassage, number: int, size: int = WINDOW_TOKENS
) -> Iterator[PassageWindow]:
    """Yield the windows of a passage; one if it fits. Each begins in the middle of the last."""
    if len(source.ids) <= size:
        yield PassageWindow(source, number, 0, len(source.ids))
        return
    starts = sorted({first for first, last in source.units() if last > first} | {0})
    first = 0
    while True:
        end = first + size
        if end >= len(source.ids):
            yield PassageWindow(source, number, first, len(source.ids))
            return
        # End where a unit begins, if that leaves a window of a useful length.
        last = max((at for at in starts if first + size // 2 < at <= end), default=end)
        yield PassageWindow(source, number, first, last)
        middle = (first + last) // 2
        first = min((at for at in starts if middle <= at <= last and at > first), default=last)


class TermWeights:
    """Weight of each word piece by its rarity among some windows."""

    def __init__(self, windows: Sequence[PassageWindow]) -> None:
        self._windows = len(windows)
        self._count = Counter(piece for window in windows for piece in set(window.ids))

    def overlap(self, asked: set[int], ids: Sequence[int]) -> float:
        return sum(map(self.of, asked.intersection(ids)))

    def of(self, piece: int) -> float:
        return math.log((self._windows + 1) / (self._count[piece] + 0.5)) + 0.1


def best_windows(
    asked: Sequence[int], windows: Sequence[PassageWindow], most: int, weights: TermWeights
) -> list[PassageWindow]:
    """Return the windows that share the most with the text; of equal ones, the first."""
    if len(windows) <= most:
        return list(windows)
    pieces = set(asked)
    overlaps = [weights.overlap(pieces, window.ids) for window in windows]
    order = sorted(range(len(windows)), key=lambda at: (-overlaps[at], at))
    return [windows[at] for at in sorted(order[:most])]


def join_units(
    asked: Sequence[int],
    sources: Sequence[TokenizedPassage],
    weights: TermWeights,
    size: int = WINDOW_TOKENS,
) -> PassageWindow | None:
    """Return the units of different passages that together share the most with the text.

    None if the units of a single passage share as much.
    """
    missing = set(asked)
    units = [
        (number, first, last)
        for number, source in enumerate(sources)
        for first, last in source.units()
        if 0 < last - first <= size
    ]
    chosen: list[tuple[int, int, int]] = []
    used = 0
    while len(chosen) < _JOINED_UNITS:
        best = max(
            (unit for unit in units if unit not in chosen and used + unit[2] - unit[1] <= size),
            key=lambda unit: weights.overlap(missing, sources[unit[0]].ids[unit[1] : unit[2]]),
            default=None,
        )
        if best is None or not missing.intersection(sources[best[0]].ids[best[1] : best[2]]):
            break
        chosen.append(best)
        used += best[2] - best[1]
        missing -= set(sources[best[0]].ids[best[1] : best[2]])
    if len({number for number, *_ in chosen}) < 2:
        return None
    number, first, last = chosen[0]
    rest = [piece for at, start, end in chosen[1:] for piece in sources[at].ids[start:end]]
    return PassageWindow(sources[number], number, first, last, tuple(rest))
