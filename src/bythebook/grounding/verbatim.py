"""Find whole sentences, items, rows or blocks of a passage verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bythebook.grounding.stream_splitter import without_line_mark
from bythebook.language.sentences import split_sentences
from bythebook.text.units import inside_fence
from bythebook.types import Hit, UnitKind


def _in_a_row(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, words)))


def find_verbatim(text: str, hit: Hit) -> str | None:
    """Return the passage's own text if whole sentences match; for a fenced block, its content."""
    words = without_line_mark(text).split()
    passage = hit.passage
    if not words or words[0] not in passage.text:
        return None
    for match in _in_a_row(words).finditer(passage.text):
        if _is_whole(hit, match.start(), match.end()):
            return inside_fence(match[0]) or match[0]
    return None


def _is_whole(hit: Hit, start: int, end: int) -> bool:
    """Return whether the span starts and ends at borders of sentences, rows or blocks.

    A part of a sentence may state the opposite of the whole.
    """
    borders = list(_borders(hit))
    return any(first == start for first, _ in borders) and any(last == end for _, last in borders)


def _borders(hit: Hit) -> Iterator[tuple[int, int]]:
    for unit in hit.passage.units:
        yield unit.start, unit.end
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM):
            for first, last in split_sentences(hit.passage.unit_text(unit)):
                yield unit.start + first, unit.start + last
