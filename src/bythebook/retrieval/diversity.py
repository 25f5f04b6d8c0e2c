"""Keep near-identical passages from taking all the places of a search."""

from __future__ import annotations

from collections.abc import Sequence

from bythebook.language.text import words
from bythebook.types import Hit

_MOST_COPIES = 2  # of the hits that a search returns: a reader learns nothing from a third one
_RUN = 4  # words
_SHARED = 0.5  # share of the runs of the shorter passage that the longer one has, too


def without_copies(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Return the hits in order; beyond the second of near-identical ones, behind the others."""
    first: list[Hit] = []
    behind: list[Hit] = []
    runs: list[set[tuple[str, ...]]] = []
    for at, hit in enumerate(hits):
        if len(first) >= limit:
            return [*first, *hits[at:], *behind]
        own = _runs(hit)
        copies = sum(len(own & other) > _SHARED * min(len(own), len(other)) for other in runs)
        if copies >= _MOST_COPIES:
            behind.append(hit)
        else:
            first.append(hit)
            runs.append(own)
    return [*first, *behind]


def _runs(hit: Hit) -> set[tuple[str, ...]]:
    own = words(hit.passage.text.lower())
    return set(zip(*(own[at:] for at in range(_RUN)), strict=False))
