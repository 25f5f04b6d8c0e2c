"""Numbers in, statistics out. Pure, and in the order of a textbook."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_Z95 = 1.959964  # two-sided 95 % of a normal distribution
BINS = 10


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def percentile(values: Sequence[float], share: float) -> float:
    """Between the two values that the share falls between, in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share that was counted on so many cases (Wilson, 1927)."""
    centre = share + _Z95**2 / (2 * count)
    spread = _Z95 * math.sqrt(share * (1 - share) / count + _Z95**2 / (4 * count**2))
    scale = 1 + _Z95**2 / count
    low, high = (centre - spread) / scale, (centre + spread) / scale
    # At 0 and 1 an end of the interval is the share itself; rounding must not move it past.
    return max(0.0, min(share, low)), min(1.0, max(share, high))


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How often one of the first is above one of the second; a tie counts half."""
    ordered = sorted(lower)
    wins = math.fsum(
        (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in higher
    )
    return wins / (len(higher) * len(lower))


@dataclass(frozen=True, slots=True)
class CurvePoint:
    confidence: float  # answer everything from here upwards …
    coverage: float  # … and this share of all questions is answered
    risk: float  # … of which this share is wrong


def risk_coverage(graded: Sequence[tuple[float, bool]], *, total: int) -> tuple[CurvePoint, ...]:
    """One point for each distinct confidence of ``(confidence, is right)``, the surest first.

    Answers of equal confidence cannot be told apart and enter together.
    """
    points: list[CurvePoint] = []
    wrong = answered = 0
    ordered = sorted(graded, reverse=True)
    for place, (confidence, is_right) in enumerate(ordered, 1):
        answered, wrong = answered + 1, wrong + (not is_right)
        if place == len(ordered) or ordered[place][0] != confidence:
            points.append(CurvePoint(confidence, answered / total, wrong / answered))
    return tuple(points)


def area_under(curve: Sequence[CurvePoint]) -> float:
    """The mean risk over the coverage that the curve reaches (Geifman et al., 2019)."""
    area = before = 0.0
    for point in curve:
        area += point.risk * (point.coverage - before)
        before = point.coverage
    return area / before


@dataclass(frozen=True, slots=True)
class Bin:
    """The cases whose confidence lies between two bounds."""

    low: float
    high: float
    count: int
    confidence: float  # said, on average
    right: float  # share that was


def reliability(graded: Sequence[tuple[float, bool]]) -> tuple[Bin, ...]:
    """Ten bins of equal width; empty ones are left out."""
    members: dict[int, list[tuple[float, bool]]] = {}
    for confidence, is_right in graded:
        members.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, is_right))
    return tuple(
        Bin(
            low=number / BINS,
            high=(number + 1) / BINS,
            count=len(inside),
            confidence=mean([confidence for confidence, _ in inside]),
            right=mean([float(is_right) for _, is_right in inside]),
        )
        for number, inside in sorted(members.items())
    )


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: how far what was said is from what was, on average."""
    total = sum(each.count for each in bins)
    return math.fsum(each.count * abs(each.confidence - each.right) for each in bins) / total
