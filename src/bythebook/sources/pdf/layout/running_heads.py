"""Running heads, running feet and page numbers: marked, so that they are left out.

A line near the top or bottom is one if it is repeated there on other pages (its digits ignored), if
it has the number of its page at one end, or if it is where such lines are on most pages.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bythebook.sources.pdf.layout.segments import Segment
from bythebook.sources.pdf.model import PageText

_ZONE = 0.13  # of the height of the page
_MOST_ROWS = 3  # at each end of a page
_LARGEST = 1.15  # of the body's size: headings are larger
_NEAREST = 1.35  # of the font size, to the text
_STEP = 3.0  # points within which positions are equal
_NUMBER = re.compile(r"[0-9]+")
_ROMAN = re.compile(r"[ivxlcdm]+|[IVXLCDM]+")
_NUMBER_AT_END = re.compile(r"[0-9]{1,5}")


@dataclass(slots=True, eq=False)
class _Candidate:
    page: int
    zone: str
    segment: Segment
    shape: str  # text without digits
    inner: float | None  # base line of the next line towards the text
    is_found: bool = False

    @property
    def place(self) -> tuple[str, int]:
        return self.zone, round(self.segment.base / _STEP)

    @property
    def places(self) -> Iterator[int]:
        """Yield the position and those beside it."""
        step = round(self.segment.base / _STEP)
        yield from (step, step - 1, step + 1)

    @property
    def is_beside_text(self) -> bool:
        """Return whether the next line is as near as the lines of a paragraph are."""
        if self.inner is None:
            return False
        return abs(self.segment.base - self.inner) < _NEAREST * self.segment.size


def mark_running_heads(pages: Sequence[tuple[PageText, list[Segment]]], body: float) -> None:
    """Set ``is_left_out`` of the words in running heads and feet."""
    found = [
        candidate
        for page, segments in pages
        for candidate in _candidates(page, segments)
        if candidate.segment.size <= _LARGEST * body
    ]
    fewest = 3 if len(pages) >= 5 else 2
    _mark_repeated(found, fewest)
    _mark_numbered(found, fewest)
    _mark_same_place(found, len(pages))
    beside = _places_of_text(found)
    for candidate in found:
        if candidate.is_found and candidate.place not in beside:
            for word in candidate.segment.words:
                word.is_left_out = True


def _candidates(page: PageText, segments: Sequence[Segment]) -> Iterator[_Candidate]:
    """Yield the outermost lines; each line but the last of a head is beside another one."""
    depth = _ZONE * (page.top - page.bottom)
    ordered = sorted(segments, key=lambda segment: segment.base)
    for zone, outermost in (("top", ordered[::-1]), ("bottom", ordered)):
        rows: list[list[Segment]] = []
        for segment in outermost:
            if rows and abs(segment.base - rows[-1][0].base) <= _STEP:
                rows[-1].append(segment)
            elif len(rows) <= _MOST_ROWS:
                rows.append([segment])
            else:
                break
        border = page.top - depth if zone == "top" else page.bottom + depth
        for row, inner in zip(rows[:_MOST_ROWS], [*rows[1:], None], strict=False):
            if (row[0].base - border) * (1 if zone == "top" else -1) < 0:
                break
            base = inner[0].base if inner else None
            for segment in row:
                yield _Candidate(page.number, zone, segment, _shape(segment.text), base)


def _shape(text: str) -> str:
    return "#" if _ROMAN.fullmatch(text) else _NUMBER.sub("#", text)


def _places_of_text(found: Iterable[_Candidate]) -> set[tuple[str, int]]:
    """Return the positions at which most lines are beside text: the first lines of paragraphs."""
    counts: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for candidate in found:
        if candidate.is_found:
            counts[candidate.place][candidate.is_beside_text] += 1
    return {place for place, (apart, beside) in counts.items() if beside > apart}


def _mark_repeated(found: Iterable[_Candidate], fewest: int) -> None:
    pages: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for candidate in found:
        for place in candidate.places:
            pages[candidate.zone, candidate.shape, place].add(candidate.page)
    for candidate in found:
        zone, place = candidate.place
        candidate.is_found = len(pages[zone, candidate.shape, place]) >= fewest


def _mark_numbered(found: Iterable[_Candidate], fewest: int) -> None:
    """Mark lines with a number at one end that counts with the pages."""
    shifts: Counter[tuple[str, int]] = Counter()
    for candidate in found:
        shifts.update((candidate.zone, shift) for shift in _shifts(candidate))
    for candidate in found:
        if any(shifts[candidate.zone, shift] >= fewest for shift in _shifts(candidate)):
            candidate.is_found = True


def _shifts(candidate: _Candidate) -> set[int]:
    words = [candidate.segment.words[0].text, candidate.segment.words[-1].text]
    return {int(word) - candidate.page for word in words if _NUMBER_AT_END.fullmatch(word)}


def _mark_same_place(found: Iterable[_Candidate], count: int) -> None:
    """Mark what is on the line of the running heads, as a heading that is on one page only."""
    pages: dict[tuple[str, int], set[int]] = defaultdict(set)
    for candidate in found:
        if candidate.is_found:
            pages[candidate.zone, round(candidate.segment.base)].add(candidate.page)
    usual = {key for key, on in pages.items() if len(on) >= max(3, count / 3)}
    for candidate in found:
        if (candidate.zone, round(candidate.segment.base)) in usual:
            candidate.is_found = True
