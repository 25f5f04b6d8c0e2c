"""Answers and times in, the figures of a table out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peers.rules import Judge, Row

Hit = dict[str, Any]


def of_times(milliseconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(milliseconds)
    return {
        "p50_ms": statistics.median(ordered),
        "p95_ms": ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
    }


def of_answers(
    rows: Sequence[Row], answers: Sequence[Sequence[Hit]], judge: Judge
) -> dict[str, float | None]:
    """Rank of the first right hit of the answerable; how well the best score tells the others."""
    ranks = [
        _rank(row, hits, judge)
        for row, hits in zip(rows, answers, strict=True)
        if row.kind == "answerable"
    ]
    best = {
        kind: [_best(hits) for row, hits in zip(rows, answers, strict=True) if row.kind == kind]
        for kind in ("answerable", "off_book", "adversarial_unanswerable")
    }
    return {
        "hit_at_1": _share(rank == 1 for rank in ranks),
        "hit_at_5": _share(rank is not None and rank <= 5 for rank in ranks),
        "mrr_at_10": statistics.mean(1 / rank if rank else 0.0 for rank in ranks),
        "auroc_off_book": auroc(best["answerable"], best["off_book"]),
        "auroc_adversarial": auroc(best["answerable"], best["adversarial_unanswerable"]),
    }


def auroc(right: Sequence[float | None], wrong: Sequence[float | None]) -> float | None:
    """The chance that a right one scores above a wrong one; None where scores are hidden."""
    if not right or not wrong or None in right or None in wrong:
        return None
    pairs = [(a, b) for a in right for b in wrong if a is not None and b is not None]
    return statistics.mean(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs)


def _rank(row: Row, hits: Sequence[Hit], judge: Judge) -> int | None:
    ranks = (
        number
        for number, hit in enumerate(hits, 1)
        if judge.is_right(row, hit["file"], hit["text"])
    )
    return next(ranks, None)


def _best(hits: Sequence[Hit]) -> float | None:
    # A search by word may find nothing at all: that is the lowest score there is.
    return hits[0]["score"] if hits else float("-inf")


def _share(truths: Any) -> float:
    return statistics.mean(float(truth) for truth in truths)
