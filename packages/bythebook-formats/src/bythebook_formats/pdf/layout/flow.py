"""Rows of all pages in reading order, with what the block builder has to know about each."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from bythebook_formats.pdf.layout.columns import regions_of
from bythebook_formats.pdf.layout.joining import has_leader
from bythebook_formats.pdf.layout.running_heads import mark_running_heads
from bythebook_formats.pdf.layout.segments import Segment, TextRow, rows_of, segments_of
from bythebook_formats.pdf.model import PageText, PdfText, Word

TURNED = 1000  # first region of text that is turned against its page
_MOSTLY = 0.6  # share of fixed-width text in a file above which it is not code
_CODE = 0.8  # share of fixed-width characters in a line of code
_SMALLER = 0.93  # than the body: a footnote
_NOTE_MARKS = frozenset("*†‡§¶⁰¹²³⁴⁵⁶⁷⁸⁹")
_WIDER = 1.3  # distance of paragraphs, of that of lines
_USUAL_STEP = 1.2  # distance of lines, of the font size
_STEP = 3.0  # points within which words are on one line
_FEWEST = 5  # entries
_SHARE = 0.5  # of the lines of a page
_CAPTION = re.compile(r"(?:Figure|Fig\.|Table|Listing|Abbildung|Tabelle|Tableau|Figura|Tabla) \d")
_STOPS = (".", "!", "?", ":", ";", ")", "”", '"')
_NEAR = 1.45  # of the font size, between lines of a paragraph
_INDENT = 0.8  # of the font size


@dataclass(slots=True)
class Flow:
    rows: list[TextRow]
    notes: dict[int, list[TextRow]]  # footnotes by page
    body: float  # font size of most text
    codes: set[int] = field(default_factory=set)  # id of rows that are code
    steps: dict[tuple[int, int], float] = field(default_factory=dict)  # by page and region
    rights: dict[int, float] = field(default_factory=dict)  # by id of a row: of its group

    def is_code(self, row: TextRow) -> bool:
        return id(row) in self.codes

    def step(self, row: TextRow) -> float:
        """Return the usual distance of lines around a row, in parts of the font size."""
        return self.steps.get((row.page, row.region), _USUAL_STEP)

    def is_near(self, above: TextRow, row: TextRow) -> bool:
        """Return whether two rows are as close as the lines of a paragraph."""
        if (above.page, above.region) != (row.page, row.region):
            return False
        size = max(above.size, row.size)
        return 0 < above.base - row.base <= (self.step(row) * _WIDER + 0.03) * size


def flow_of(text: PdfText) -> Flow:
    pages = [(page, _segments(page)) for page in text.pages]
    body = _body_size(text.pages)
    mark_running_heads([(page, main) for page, (main, _) in pages], body)
    mark_contents(main for _, (main, _) in pages)
    rows: list[TextRow] = []
    notes: dict[int, list[TextRow]] = {}
    for page, (main, others) in pages:
        kept = [segment for segment in main if not segment.words[0].left_out]
        found = _page_rows(page.number, kept)
        found, notes[page.number] = _without_notes(page, found, body)
        before = next((row for row in reversed(rows) if row.region < TURNED), None)
        rows += put_floats_later(before, found, body)
        for region, segments in enumerate(others, TURNED):
            rows += rows_of(segments, page.number, region)
    flow = Flow(rows, notes, body)
    flow.codes = _code_rows(rows)
    flow.steps = _steps(rows)
    flow.rights = _rights(flow)
    return flow


def _segments(page: PageText) -> tuple[list[Segment], list[list[Segment]]]:
    """Return the segments of the page, and those of text that is turned against it."""
    turns: dict[int, list[Word]] = defaultdict(list)
    for word in page.words:
        turns[word.turn].append(word)
    ordered = sorted(turns.values(), key=lambda words: -sum(len(word.text) for word in words))
    main, *others = ordered or [[]]
    return segments_of(main), [segments_of(words) for words in others]


def _body_size(pages: Iterable[PageText]) -> float:
    sizes: Counter[float] = Counter()
    for page in pages:
        for word in page.words:
            if not word.style.mono:
                sizes[round(word.size, 1)] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def _page_rows(page: int, segments: Sequence[Segment]) -> list[TextRow]:
    rows: list[TextRow] = []
    for number, region in enumerate(regions_of(segments)):
        rows += rows_of(region, page, number)
    return rows


def _without_notes(
    page: PageText, rows: Sequence[TextRow], body: float
) -> tuple[list[TextRow], list[TextRow]]:
    """Separate the footnotes: small type below the text of a column."""
    middle = (page.top + page.bottom) / 2
    kept: list[TextRow] = []
    notes: list[TextRow] = []
    for region in dict.fromkeys(row.region for row in rows):
        own = [row for row in rows if row.region == region]
        start = len(own)
        while start and own[start - 1].size <= _SMALLER * body and own[start - 1].base < middle:
            start -= 1
        while start < len(own) and not _starts_note(own[start]):
            start += 1
        is_below_text = start > 0
        kept += own[:start] if is_below_text else own
        notes += own[start:] if is_below_text else []
    return kept, notes


def _starts_note(row: TextRow) -> bool:
    first = row.words[0].text
    return not row.mono and (first[0] in _NOTE_MARKS or first.rstrip(".)").isdecimal())


def _code_rows(rows: Sequence[TextRow]) -> set[int]:
    """Return the ids of rows in fixed-width type, and of rows between two of them."""
    shares = [_mono_share(row) for row in rows]
    letters = [sum(len(word.text) for word in row.words) for row in rows]
    mono = sum(share * count for share, count in zip(shares, letters, strict=True))
    if mono > _MOSTLY * sum(letters):
        return set()
    codes = [
        share >= _CODE and not has_leader(row.words)  # entries of an index are no code
        for row, share in zip(rows, shares, strict=True)
    ]
    for index in range(1, len(rows) - 1):
        if codes[index - 1] and codes[index + 1] and _is_between(rows[index - 1 : index + 2]):
            codes[index] = True
    return {id(row) for row, is_code in zip(rows, codes, strict=True) if is_code}


def _is_between(rows: Sequence[TextRow]) -> bool:
    """Return whether the second row is as close to the others as lines of code are."""
    above, row, below = rows
    size = max(above.size, below.size)
    steps = above.base - row.base, row.base - below.base
    is_same = (above.page, above.region) == (row.page, row.region) == (below.page, below.region)
    return is_same and row.size <= 1.05 * size and all(0 < step <= 1.4 * size for step in steps)


def _mono_share(row: TextRow) -> float:
    """Return the share of letters in fixed-width type; signs may come from another font."""
    counts = [0, 0]
    for word in row.words:
        if any(char.isalnum() for char in word.text) or word.style.mono:
            counts[word.style.mono] += len(word.text)
    return counts[1] / sum(counts) if sum(counts) else 0.0


def _steps(rows: Sequence[TextRow]) -> dict[tuple[int, int], float]:
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for above, row in itertools.pairwise(rows):
        key = row.page, row.region
        step = (above.base - row.base) / max(above.size, row.size, 0.1)
        if key == (above.page, above.region) and 0.9 <= step <= 2.2:
            found[key].append(step)
    return {key: sorted(steps)[len(steps) // 4] for key, steps in found.items()}


def _rights(flow: Flow) -> dict[int, float]:
    """Return the right edge of the group of near rows that each row is in."""
    rights: dict[int, float] = {}
    group: list[TextRow] = []
    for row in [*flow.rows, None]:
        if row is None or (group and not flow.is_near(group[-1], row)):
            right = max((each.right for each in group), default=0.0)
            rights.update((id(each), right) for each in group)
            group = []
        if row is not None:
            group.append(row)
    return rights


# --- tables of contents ---------------------------------------------------------------------------


def mark_contents(pages: Iterable[list[Segment]]) -> None:
    """Set ``left_out`` of the words on pages whose lines mostly lead to page numbers."""
    for segments in pages:
        lines: defaultdict[int, list[Word]] = defaultdict(list)
        for segment in segments:
            if not segment.words[0].left_out:
                lines[round(segment.base / _STEP)] += segment.words
        entries = [words for words in lines.values() if has_leader(words)]
        if len(entries) >= max(_FEWEST, _SHARE * len(lines)):
            for word in chain.from_iterable(lines.values()):
                word.left_out = "tables of contents"


# --- figures and tables within a sentence ---------------------------------------------------------


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
