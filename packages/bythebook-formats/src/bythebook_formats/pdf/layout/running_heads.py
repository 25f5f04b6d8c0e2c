"""Running heads, running feet and page numbers: marked, so that they are left out.

A line near the top or bottom is one if it is repeated there on pages that otherwise differ (its
digits ignored), if it has the number of its page at one end, or if it is where such lines are on
most pages. A line of the text may be repeated too: it has few letters, is code, is found again
many pages later only, or has a line of the text between itself and the edge of the page.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bythebook_formats.pdf.layout.segments import Segment
from bythebook_formats.pdf.model import PageText

_ZONE = 0.13  # of the height of the page
_MOST_ROWS = 3  # at each end of a page
_LARGEST = 1.15  # of the body's size: headings are larger
_NEAREST = 1.35  # of the font size, to the text
_STEP = 3.0  # points within which positions are equal
_LETTERS = 3  # fewer may be a bullet, a bracket or a symbol of the text
_DENSEST = 4  # of so many pages in a row, one has the head: only left pages, not the first ones
_MOSTLY = 0.6  # share of fixed-width text in a file above which it is not code
_NUMBER = re.compile(r"[0-9]+")
_PAGE_NUMBER = re.compile(r"\W*#\W*(?:#\W*)?")  # "- 3 -", "3 / 17"
_ROMAN = re.compile(r"[ivxlcdm]+|[IVXLCDM]+")
_NUMBER_AT_END = re.compile(r"[0-9]{1,5}")


@dataclass(slots=True, eq=False)
class _Candidate:
    page: int
    zone: str
    segment: Segment
    shape: str  # text without digits
    inner: float | None  # base line of the next line towards the text
    beside: str  # the lines towards the text
    row: int  # counted from the edge of the page
    is_found: bool = False

    @property
    def is_number(self) -> bool:
        return self.row == 0 and _PAGE_NUMBER.fullmatch(self.shape) is not None

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
    """Set ``left_out`` of the words in running heads and feet."""
    styles = Counter(word.style.mono for page, _ in pages for word in page.words)
    is_mono = styles[True] > _MOSTLY * styles.total()
    found = [
        candidate
        for page, segments in pages
        for candidate in _candidates(page, segments)
        if candidate.segment.size <= _LARGEST * body and (is_mono or not candidate.segment.mono)
    ]
    fewest = 3 if len(pages) >= 5 else 2
    _mark_repeated(found, fewest)
    _mark_numbered(found, fewest)
    _mark_same_place(found, len(pages))
    beside = _places_of_text(found)
    heads = [
        candidate for candidate in found if candidate.is_found and candidate.place not in beside
    ]
    rows = {(candidate.page, candidate.zone, candidate.row) for candidate in heads}
    for candidate in heads:
        if all((candidate.page, candidate.zone, row) in rows for row in range(candidate.row)):
            for word in candidate.segment.words:
                word.left_out = "running heads, running feet and page numbers"


def _candidates(page: PageText, segments: Sequence[Segment]) -> Iterator[_Candidate]:
    """Yield the outermost lines; each line but the last of a head is beside another one."""
    depth = _ZONE * (page.top - page.bottom)
    ordered = sorted(segments, key=lambda segment: segment.base)
    for zone, outermost in (("top", ordered[::-1]), ("bottom", ordered)):
        other = page.bottom + depth if zone == "top" else page.top - depth
        rows: list[list[Segment]] = []
        for segment in outermost:
            if rows and abs(segment.base - rows[-1][0].base) <= _STEP:
                rows[-1].append(segment)
            elif len(rows) <= _MOST_ROWS and (segment.base > other) == (zone == "top"):
                rows.append([segment])
            else:
                break
        border = page.top - depth if zone == "top" else page.bottom + depth
        texts = [" ".join(segment.text for segment in row) for row in rows]
        for index, row in enumerate(rows[:_MOST_ROWS]):
            if (row[0].base - border) * (1 if zone == "top" else -1) < 0:
                break
            base = rows[index + 1][0].base if index + 1 < len(rows) else None
            beside = "\n".join(texts[index + 1 :])
            for segment in row:
                shape = _shape(segment.text)
                yield _Candidate(page.number, zone, segment, shape, base, beside, index)


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
    pages: dict[tuple[str, str, int], dict[int, str]] = defaultdict(dict)
    for candidate in found:
        for place in candidate.places:
            on = pages[candidate.zone, candidate.shape, place]
            on.setdefault(candidate.page, candidate.beside)
    for candidate in found:
        zone, place = candidate.place
        on = pages[zone, candidate.shape, place]
        if candidate.is_number:
            count = len(on)
        elif sum(map(str.isalpha, candidate.shape)) >= _LETTERS:
            # The steps of a slide repeat their text as well, and the lines beside it.
            count = _different(on.values())
        else:
            continue
        candidate.is_found = count >= fewest and _is_dense(on)


def _different(texts: Iterable[str]) -> int:
    """Return how many texts there are that do not go on as another one does."""
    ordered = sorted(set(texts))
    return sum(not after.startswith(text) for text, after in pairwise([*ordered, "\0"]))


def _is_dense(pages: Iterable[int]) -> bool:
    on = list(pages)
    return len(on) * _DENSEST >= max(on) - min(on)


def _mark_numbered(found: Iterable[_Candidate], fewest: int) -> None:
    """Mark lines with a number at one end that counts with the pages."""
    shifts: dict[tuple[str, int], set[int]] = defaultdict(set)
    for candidate in found:
        for shift in _shifts(candidate):
            shifts[candidate.zone, shift].add(candidate.page)
    usual = {key for key, on in shifts.items() if len(on) >= fewest and _is_dense(on)}
    for candidate in found:
        if any((candidate.zone, shift) in usual for shift in _shifts(candidate)):
            candidate.is_found = True


def _shifts(candidate: _Candidate) -> set[int]:
    if candidate.row > 0:
        return set()
    words = [candidate.segment.words[0].text, candidate.segment.words[-1].text]
    return {int(word) - candidate.page for word in words if _NUMBER_AT_END.fullmatch(word)}


def _mark_same_place(found: Iterable[_Candidate], count: int) -> None:
    """Mark what is on the line of the running heads, as a heading that is on one page only."""
    pages: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    for candidate in found:
        if candidate.is_found:
            pages[_line_of(candidate)].add(candidate.page)
    usual = {key for key, on in pages.items() if len(on) >= max(3, count / 3)}
    for candidate in found:
        if _line_of(candidate) in usual and not candidate.is_beside_text:
            candidate.is_found = True


def _line_of(candidate: _Candidate) -> tuple[str, int, int]:
    return candidate.zone, round(candidate.segment.base), round(candidate.segment.size)
