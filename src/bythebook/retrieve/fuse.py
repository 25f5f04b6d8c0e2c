"""Several rankings of passages in, one out.

Fusion only decides which passages are worth weighing; how good they are is the calibrated score.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bythebook.model import Hit
from bythebook.ports import Found

_RRF = 60  # Cormack, Clarke and Büttcher, 2009


def fuse(rankings: Iterable[Sequence[Found]], *, limit: int) -> list[str]:
    """The passages that the rankings together put first; the order of rankings is no matter."""
    merit: defaultdict[str, list[float]] = defaultdict(list)
    for ranking in rankings:
        for rank, found in enumerate(ranking, 1):
            merit[found.passage_id].append(1 / (_RRF + rank))
    # Sorted before summing: floating-point sums must not depend on the order of rankings.
    order = sorted(merit, key=lambda name: (-sum(sorted(merit[name])), name))
    return order[:limit]


def best(hits: Iterable[Hit], *, limit: int) -> tuple[Hit, ...]:
    """Ordered by score; of passages with the same words only the best stays."""
    kept: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, -hit.cosine, hit.passage.id)):
        kept.setdefault(hit.passage.content_hash, hit)
    ordered = list(kept.values())[:limit]
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(ordered, 1))
