"""Search within the reader: headings by keywords, text by semantic search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bythebook.server.reader.blocks import unit_id
from bythebook.text.outline import OutlineEntry
from bythebook.text.text_fragments import folded
from bythebook.types import Hit

_LONGEST_SNIPPET = 240  # characters


@dataclass(frozen=True, slots=True)
class Found:
    """Search result; ``at`` is the id of an element on its page."""

    kind: str  # page, section, text
    title: str
    trail: str  # path of headings above it
    url: str  # of the page
    at: str
    snippet: str = ""


def by_title(wanted: str, pages: Sequence[OutlineEntry], *, limit: int) -> list[Found]:
    """Return pages, then sections, whose titles contain all words, as a whole or a prefix."""
    words = folded(wanted).split()
    if not words:
        return []
    found = sorted(_named(words, pages), key=lambda ranked: ranked[0])
    return [place for _, place in found[:limit]]


def _named(
    words: Sequence[str], pages: Sequence[OutlineEntry]
) -> Iterator[tuple[tuple[int, int], Found]]:
    for page in pages:
        rank = _rank(words, page.title)
        if rank is not None:
            yield (0, rank), Found("page", page.title, page.module, page.url, "")
        for section in page.sections:
            rank = _rank(words, section.path[-1])
            if rank is not None:
                anchor = section.url.partition("#")[2]
                trail = " › ".join((page.title, *section.path[:-1]))
                yield (1, rank), Found("section", section.path[-1], trail, page.url, anchor)


def _rank(words: Sequence[str], title: str) -> int | None:
    """Return the rank of a title, 0 is best; None unless each word is a prefix in the title."""
    own = folded(title).split()
    if not all(any(word.startswith(begun) for word in own) for begun in words):
        return None
    return 0 if own[: len(words)] == list(words) else 1


def by_meaning(wanted: str, hits: Sequence[Hit]) -> Iterator[Found]:
    words = folded(wanted).split()
    for hit in hits:
        place = hit.passage.place
        url = place.page_url or place.file
        unit = _best_unit(hit, words)
        if unit is None:
            continue
        snippet = _cut(hit.passage.unit_text(hit.passage.units[unit]))
        at = unit_id(hit.passage.id, unit)
        yield Found("text", place.heading, place.path, url, at, snippet)


def _best_unit(hit: Hit, words: Sequence[str]) -> int | None:
    """Return the unit with the most of the words; among equals, the one of highest cosine."""

    def fitness(number: int) -> tuple[int, float]:
        own = folded(hit.passage.unit_text(hit.passage.units[number])).split()
        having = sum(any(word.startswith(begun) for word in own) for begun in words)
        near = hit.unit_cosines[number] if number < len(hit.unit_cosines) else 0.0
        return having, near

    return max(range(len(hit.passage.units)), key=fitness, default=None)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SNIPPET else text[:_LONGEST_SNIPPET].rstrip() + "…"
