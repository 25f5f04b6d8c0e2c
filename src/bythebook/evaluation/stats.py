"""Pure functions for the statistics of an evaluation."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

_Z95 = 1.959964  # two-sided 95 % of a normal distribution
BINS = 10


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share of ``count`` cases (Wilson, 1927)."""
    centre = share + _Z95**2 / (2 * count)
    spread = _Z95 * math.sqrt(share * (1 - share) / count + _Z95**2 / (4 * count**2))
    scale = 1 + _Z95**2 / count
    low, high = (centre - spread) / scale, (centre + spread) / scale
    # At 0 and 1 one bound equals the share; rounding must not move it past the share.
    return max(0.0, min(share, low)), min(1.0, max(share, high))


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Return how often a value of ``higher`` exceeds one of ``lower``; ties count half."""
    ordered = sorted(lower)
    wins = math.fsum(
        (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in higher
    )
    return wins / (len(higher) * len(lower))


@dataclass(frozen=True, slots=True)
class CurvePoint:
    confidence: float  # if all answers with at least this confidence are shown …
    coverage: float  # … this share of all questions is answered
    risk: float  # … and this share of the answers is wrong


def risk_coverage(graded: Sequence[tuple[float, bool]], *, total: int) -> tuple[CurvePoint, ...]:
    """Return one point for each distinct confidence of ``(confidence, is right)``, descending.

    Answers of equal confidence have no order and are added together.
    """
    points: list[CurvePoint] = []
    wrong = 0
    ordered = sorted(graded, reverse=True)
    for answered, (confidence, is_right) in enumerate(ordered, 1):
        wrong += not is_right
        if answered == len(ordered) or ordered[answered][0] != confidence:
            points.append(CurvePoint(confidence, answered / total, wrong / answered))
    return tuple(points)


def area_under(curve: Sequence[CurvePoint]) -> float:
    """Return the mean risk over the coverage that the curve reaches (Geifman et al., 2019)."""
    area = before = 0.0
    for point in curve:
        area += point.risk * (point.coverage - before)
        before = point.coverage
    return area / before


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases whose confidence lies between two bounds."""

    low: float
    high: float
    count: int
    confidence: float  # mean confidence
    right: float  # share of right answers


def reliability(graded: Sequence[tuple[float, bool]]) -> tuple[Bin, ...]:
    """Return ten bins of equal width, without the empty ones."""
    members: dict[int, list[tuple[float, bool]]] = {}
    for confidence, is_right in graded:
        members.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, is_right))
    return tuple(
        Bin(
            low=number / BINS,
            high=(number + 1) / BINS,
            count=len(inside),
            confidence=fmean([confidence for confidence, _ in inside]),
            right=fmean([float(is_right) for _, is_right in inside]),
        )
        for number, inside in sorted(members.items())
    )


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error: mean distance of confidence from accuracy."""
    total = sum(each.count for each in bins)
    return math.fsum(each.count * abs(each.confidence - each.right) for each in bins) / total
