"""Weighed passages in, one ranking out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bythebook.model import Signals
from bythebook.ports import Candidate


@dataclass(frozen=True, slots=True)
class Weighed:
    candidate: Candidate
    signals: Signals
    merit: float


def best(found: Iterable[Weighed], *, limit: int) -> list[Weighed]:
    """Ordered by merit; of passages with the same words only the best stays."""
    kept: dict[str, Weighed] = {}
    for weighed in sorted(found, key=_merit):
        kept.setdefault(weighed.candidate.content_hash, weighed)
    return list(kept.values())[:limit]


def _merit(weighed: Weighed) -> tuple[float, float, str]:
    # The id last: the ranking must not depend on the order in which a store found them.
    return -weighed.merit, -weighed.candidate.cosine, weighed.candidate.passage_id
