"""Segments (pieces of a line without a wide gap) and rows of segments beside each other."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bythebook_formats.pdf.model import Word

_WIDEST_SPACE = 1.0  # of the font size; a wider gap may separate columns or cells
_RIGHT_TO_LEFT = ("R", "AL")


@dataclass(slots=True, eq=False)
class Segment:
    """Words beside each other."""

    words: list[Word]
    left: float = 0.0
    right: float = 0.0
    base: float = 0.0
    size: float = 0.0

    @classmethod
    def of(cls, words: list[Word]) -> Segment:
        main = _main_word(words)
        return cls(
            words,
            min(word.left for word in words),
            max(word.right for word in words),
            main.base,
            main.size,
        )

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def mono(self) -> bool:
        return all(word.style.mono for word in self.words)

    @property
    def bold(self) -> bool:
        return all(word.style.bold for word in self.words)

    @property
    def width(self) -> float:
        return self.right - self.left


def _main_word(words: Sequence[Word]) -> Word:
    """Return a word of the size and base line that most characters have.

    Code within a line does not count: it is often smaller.
    """
    words = [word for word in words if not word.style.mono] or words
    if len(words) == 1:
        return words[0]
    counts: Counter[tuple[float, float]] = Counter()
    for word in words:
        counts[round(word.size, 1), round(word.base, 1)] += len(word.text)
    most = counts.most_common(1)[0][0]
    return next(word for word in words if (round(word.size, 1), round(word.base, 1)) == most)


def segments_of(words: Iterable[Word]) -> list[Segment]:
    """Put words together that follow each other in the file and on the page."""
    groups: list[list[Word]] = []
    for word in words:
        if groups and _follows(groups[-1][-1], word):
            groups[-1].append(word)
        else:
            groups.append([word])
    return [Segment.of(group) for group in groups]


def _follows(before: Word, word: Word) -> bool:
    size = max(before.size, word.size)
    gap = word.left - before.right
    if _is_right_to_left(word.text):
        gap = max(gap, before.left - word.right)
    return abs(word.base - before.base) <= 0.45 * size and -0.5 * size <= gap <= (
        _WIDEST_SPACE * size
    )


def _is_right_to_left(text: str) -> bool:
    return not text.isascii() and unicodedata.bidirectional(text[0]) in _RIGHT_TO_LEFT


@dataclass(slots=True, eq=False)
class TextRow:
    """Segments on one base line, from left to right."""

    segments: list[Segment]
    page: int
    region: int = 0  # number of the column or band on the page
    base: float = field(init=False)
    size: float = field(init=False)
    cells: list[Segment] | None = None  # computed when a table is looked for

    def __post_init__(self) -> None:
        self.segments.sort(key=lambda segment: segment.left)
        largest = max(self.segments, key=lambda segment: (not segment.mono, len(segment.words)))
        self.base, self.size = largest.base, largest.size

    @property
    def left(self) -> float:
        return self.segments[0].left

    @property
    def right(self) -> float:
        return max(segment.right for segment in self.segments)

    @property
    def words(self) -> list[Word]:
        words = [word for segment in self.segments for word in segment.words]
        letters = sum(_is_right_to_left(word.text) for word in words)
        if letters * 2 > len(words):  # segments of right-to-left text, the first one at the right
            words = [word for segment in reversed(self.segments) for word in segment.words]
        return words

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def mono(self) -> bool:
        return all(segment.mono for segment in self.segments)

    @property
    def bold(self) -> bool:
        return all(segment.bold for segment in self.segments)


def rows_of(segments: Iterable[Segment], page: int, region: int = 0) -> list[TextRow]:
    """Return rows from top to bottom."""
    ordered = sorted(segments, key=lambda segment: (-segment.base, segment.left))
    groups: list[list[Segment]] = []
    for segment in ordered:
        if groups and groups[-1][0].base - segment.base <= 0.35 * min(
            groups[-1][0].size, segment.size
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return [TextRow(group, page, region) for group in groups]
