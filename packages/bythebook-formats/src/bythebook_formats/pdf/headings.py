"""Headings: located entries of the outline, or else lines in larger or bolder type."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bythebook_formats.pdf.layout.flow import TURNED
from bythebook_formats.pdf.layout.joining import HYPHENS, SeenWords, has_leader, join_lines
from bythebook_formats.pdf.layout.lists import marker_of
from bythebook_formats.pdf.layout.segments import TextRow
from bythebook_formats.pdf.layout.tables import cells_of
from bythebook_formats.pdf.model import Bookmark

_NUMBERING = re.compile(
    r"(?:(?:chapter|part|appendix|section|kapitel|teil|chapitre|partie|anhang|cap[ií]tulo|parte) )?"
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3})*+|[ivxlc]{1,7}|[a-z](?:\.[0-9]{1,3})*+)[.:)]? "
)
_PART = re.compile(r"(?:part|teil|partie|parte)\b", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:chapter|part|appendix|kapitel|teil|chapitre|partie|anhang|cap[ií]tulo|parte)"
    r" [0-9a-z]{1,5}[.:]?",
    re.IGNORECASE,
)
_MOST_ROWS = 4  # of one heading
_LONGEST = 160  # characters of a heading that is found by its type
_MOST_BOLD = 0.3  # share of bold text above which bold lines are no headings
_LARGER = 1.12  # than the body
_MOST_LEVELS = 4
_LONG_FILE = 20  # pages; a title above all others is then no chapter
_FEWEST_BOOKMARKS = 2
_ENDS = (".", ",", ";", ":", "?!")


@dataclass(frozen=True, slots=True)
class FoundHeading:
    """FoundHeading in the flow of rows."""

    at: int  # row before which it starts
    rows: int  # that it consists of; 0: it is in the outline only
    level: int  # from 1
    title: str
    is_chapter: bool = False
    module: str = ""


def headings_of(
    rows: Sequence[TextRow], outline: Sequence[Bookmark], vocabulary: SeenWords, body: float
) -> list[FoundHeading]:
    """Return the headings in the order of the rows, with chapters at level 1."""
    pages = len({row.page for row in rows})
    if len(outline) >= _FEWEST_BOOKMARKS or (outline and pages <= _LONG_FILE):
        found = _located(rows, outline, vocabulary)
    else:
        found = _by_type(rows, vocabulary, body, pages)
    return _with_chapters(found, pages)


# --- chapters -------------------------------------------------------------------------------------


def _with_chapters(found: Sequence[FoundHeading], pages: int) -> list[FoundHeading]:
    """Set which headings start a page of the book, and the levels below them."""
    if not found:
        return []
    top = min(heading.level for heading in found)
    while pages > _LONG_FILE and sum(heading.level == top for heading in found) == 1:
        deeper = [heading.level for heading in found if heading.level > top]
        if len(deeper) < 2:
            break
        top = min(deeper)
    marked: list[FoundHeading] = []
    chapter, module = top, ""
    for index, heading in enumerate(found):
        if heading.level < top:
            chapter, module = top, ""
            marked.append(replace(heading, level=1, is_chapter=True))
            continue
        if heading.level == top:
            has_below = index + 1 < len(found) and found[index + 1].level > top
            is_part = bool(_PART.match(heading.title)) and has_below
            module = heading.title if is_part else ""
            chapter = top + 1 if is_part else top
        is_chapter = heading.level <= chapter
        level = 1 if is_chapter else heading.level - chapter + 1
        marked.append(replace(heading, level=level, is_chapter=is_chapter, module=module))
    return marked


# --- outline --------------------------------------------------------------------------------------


def _located(
    rows: Sequence[TextRow], outline: Sequence[Bookmark], vocabulary: SeenWords
) -> list[FoundHeading]:
    pages: dict[int, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        pages[row.page].append(index)
    folded = _Folded(rows)
    found: list[FoundHeading] = []
    for mark in outline:
        at, count = _locate(rows, pages, mark, folded)
        if at is None:
            continue
        title = mark.title
        if count:
            at, count = _with_label(rows, at, count)
            title = _title(rows[at : at + count], vocabulary)
        found.append(FoundHeading(at, count, mark.level + 1, title))
    return _apart(found)


def _apart(found: Sequence[FoundHeading]) -> list[FoundHeading]:
    """Return headings in order, without those that start inside another one.

    Several can be at one row: a part that is in the outline only, and its first chapter.
    """
    kept: list[FoundHeading] = []
    for heading in sorted(found, key=lambda heading: heading.at):
        if not kept or heading.at >= kept[-1].at + kept[-1].rows:
            kept.append(heading)
    return kept


class _Folded:
    """Letters and digits of rows, computed once for each."""

    def __init__(self, rows: Sequence[TextRow]) -> None:
        self._rows = rows
        self._texts: dict[int, str] = {}

    def __getitem__(self, index: int) -> str:
        if index not in self._texts:
            self._texts[index] = _fold(self._rows[index].text)
        return self._texts[index]


def _fold(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _locate(
    rows: Sequence[TextRow], pages: Mapping[int, Sequence[int]], mark: Bookmark, folded: _Folded
) -> tuple[int | None, int]:
    """Return the first row of a heading and the number of its rows; 0 if it is not found."""
    for page in (mark.page, mark.page + 1):
        matches = [
            (index, count)
            for index in pages.get(page, ())
            if (count := _matching_rows(rows, index, mark.title, folded))
        ]
        if matches and _fold(mark.title):
            top = mark.top if page == mark.page and mark.top is not None else float("inf")
            return min(matches, key=lambda match: _distance(rows[match[0]], top))
    return _place(rows, pages, mark), 0


def _distance(row: TextRow, top: float) -> tuple[float, float]:
    """Prefer the row just below the target, and of several the one in the largest type."""
    if top == float("inf"):
        return (0.0, -row.size)
    below = top - row.base
    return (round(abs(below - row.size) / 20), -row.size)


def _matching_rows(rows: Sequence[TextRow], index: int, title: str, folded: _Folded) -> int:
    """Return how many rows from this one are the title, with or without a number before it."""
    wanted = {_fold(title), _fold(_without_number(title))}
    longest = max(map(len, wanted)) + 24  # letters
    size = 0
    for count in range(1, _MOST_ROWS + 1):
        at = index + count - 1
        if at >= len(rows) or rows[at].page != rows[index].page:
            return 0
        size += len(folded[at])
        if size > longest:
            return 0
        text = " ".join(row.text for row in rows[index : at + 1])
        if wanted & {_fold(text), _fold(_without_number(text))}:
            return count
    return 0


def _without_number(text: str) -> str:
    folded = text.casefold()
    found = _NUMBERING.match(folded)
    return folded[found.end() :] if found else folded


def _with_label(rows: Sequence[TextRow], at: int, count: int) -> tuple[int, int]:
    """Add the line "Chapter 3" above a title."""
    above = rows[at - 1] if at else None
    if above is None or above.page != rows[at].page or not _LABEL.fullmatch(above.text):
        return at, count
    return at - 1, count + 1


def _title(rows: Sequence[TextRow], vocabulary: SeenWords) -> str:
    first, rest = rows[0], rows[1:]
    if rest and _LABEL.fullmatch(first.text):
        title = join_lines((row.words for row in rest), vocabulary)
        return f"{first.text.rstrip('.:')}: {title}"
    return join_lines((row.words for row in rows), vocabulary)


def _place(
    rows: Sequence[TextRow], pages: Mapping[int, Sequence[int]], mark: Bookmark
) -> int | None:
    """Return the row at which the target of a bookmark is."""
    on_page = pages.get(mark.page)
    if not on_page:
        later = [page for page in pages if page > mark.page]
        return pages[min(later)][0] if later else None
    if mark.top is None:
        return on_page[0]
    return next((index for index in on_page if rows[index].base <= mark.top + 2), on_page[-1])


# --- type -----------------------------------------------------------------------------------------


def _by_type(
    rows: Sequence[TextRow], vocabulary: SeenWords, body: float, pages: int
) -> list[FoundHeading]:
    """Return short lines in larger type, or bold ones that stand alone; levels are by size."""
    letters = sum(len(row.text) for row in rows)
    bold = sum(len(row.text) for row in rows if row.bold)
    groups = list(_candidates(rows, _Type(body, is_bold=bold > _MOST_BOLD * letters)))
    sizes = Counter(_kind(rows[at]) for at, _ in groups)
    on_cover = {_kind(rows[at]) for at, _ in groups if rows[at].page == rows[0].page}
    later = {_kind(rows[at]) for at, _ in groups if rows[at].page != rows[0].page}
    if pages > _LONG_FILE:
        sizes = Counter({kind: count for kind, count in sizes.items() if kind in later})
    elif on_cover and later:
        largest = max(sizes)
        only_cover = on_cover - later - {largest}
        sizes = Counter({kind: n for kind, n in sizes.items() if kind not in only_cover})
    ranked = sorted(sizes, reverse=True)[:_MOST_LEVELS]
    levels = {kind: level for level, kind in enumerate(ranked, 1)}
    return [
        FoundHeading(at, count, levels[_kind(rows[at])], title)
        for at, count in groups
        if _kind(rows[at]) in levels
        and len(title := _title(rows[at : at + count], vocabulary)) <= _LONGEST
    ]


@dataclass(frozen=True, slots=True)
class _Type:
    """Type of the body."""

    size: float
    is_bold: bool  # then bold lines are no headings


def _kind(row: TextRow) -> tuple[float, bool]:
    return round(row.size * 2) / 2, row.bold


def _candidates(rows: Sequence[TextRow], body: _Type) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of what may be a heading."""
    index = 0
    while index < len(rows):
        count = 0
        while count < _MOST_ROWS and _goes_on(rows, index, index + count, body):
            count += 1
        if count:
            yield index, count
        index += max(count, 1)


def _goes_on(rows: Sequence[TextRow], first: int, at: int, body: _Type) -> bool:
    if at >= len(rows) or not _is_heading(rows, at, body):
        return False
    if at == first:
        return True
    row, above = rows[at], rows[at - 1]
    near = above.base - row.base <= 1.7 * row.size
    return above.page == row.page and near and _kind(row) == _kind(above)


def _is_heading(rows: Sequence[TextRow], at: int, body: _Type) -> bool:
    row = rows[at]
    text = row.text
    if row.mono or has_leader(row.words) or not any(char.isalpha() for char in text):
        return False
    if row.region >= TURNED or text.endswith(HYPHENS) or _goes_on_in_text(rows, at):
        return False
    if row.size >= _LARGER * body.size:
        return len(text) <= _LONGEST and sum(map(str.isalpha, text)) > 2
    is_bold = row.bold and not body.is_bold
    if not is_bold or row.size < 0.95 * body.size or text.endswith(_ENDS) or len(text) > 80:
        return False
    if len(cells_of(row)) > 1 and not text[0].isdigit():
        return False
    is_item = marker_of(row.words) is not None and not row.words[0].style.bold
    return not is_item and _stands_alone(rows, at)


def _goes_on_in_text(rows: Sequence[TextRow], at: int) -> bool:
    """Return whether the next line, in another type, goes on with the sentence."""
    row = rows[at]
    below = rows[at + 1] if at + 1 < len(rows) else None
    if below is None or (below.page, below.region) != (row.page, row.region):
        return False
    is_near = row.base - below.base <= 1.4 * row.size
    return is_near and below.text[:1].islower() and _kind(below) != _kind(row)


def _stands_alone(rows: Sequence[TextRow], at: int) -> bool:
    row = rows[at]
    above = rows[at - 1] if at else None
    if above is None or (above.page, above.region) != (row.page, row.region):
        return True
    return above.base - row.base > 1.45 * row.size or above.bold
