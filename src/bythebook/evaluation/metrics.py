"""Compute named figures from graded cases. ``metrics.toml`` lists the names with descriptions.

A figure is absent if it applies to no case. Most are also measured for each kind of question:
``refused.off_book``.
"""

from __future__ import annotations

import math
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from statistics import fmean

import numpy as np

from bythebook.errors import InvalidInput
from bythebook.evaluation.grade import Case, overlap

# --- statistics ----------------------------------------------------------------------------------


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


# --- figures -------------------------------------------------------------------------------------


Values = Callable[[Case], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """Entry of ``metrics.toml``, which explains the fields."""

    description: str
    is_share: bool = True
    lower_is_better: bool = False
    by_kind: bool = True
    only_by_kind: bool = False


def _read_metrics() -> dict[str, Metric]:
    text = resources.files("bythebook.evaluation").joinpath("metrics.toml").read_text("utf-8")
    return {name: Metric(**fields) for name, fields in tomllib.loads(text).items()}


METRICS = _read_metrics()


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    count: int  # number of cases, citations or sentences
    interval: tuple[float, float] | None = None  # 95 %, for shares only


@dataclass(frozen=True, slots=True)
class Evaluation:
    cases: tuple[Case, ...]
    figures: dict[str, Figure]
    curve: tuple[CurvePoint, ...]
    bins: tuple[Bin, ...]
    support_bins: tuple[Bin, ...] = ()  # of claims, by the verifier's probability

    def value(self, name: str) -> float | None:
        figure = self.figures.get(name)
        return None if figure is None else figure.value


def measure(cases: Sequence[Case], support: Sequence[tuple[float, bool]] = ()) -> Evaluation:
    """Compute the figures; ``support`` has the verifier's probability and label of each claim."""
    graded = [(case.confidence, case.right) for case in cases if case.right is not None]
    unknown = sum(case.right is None and bool(case.text) for case in cases)
    curve = risk_coverage(graded, total=len(cases) - unknown) if graded else ()
    bins = reliability(graded)
    figures = [*_means(cases), *_separation(cases), *_times(cases)]
    if graded:
        figures.append(Figure("aurc", area_under(curve), len(graded)))
        figures.append(Figure("ece", calibration_error(bins), len(graded)))
    support_bins = reliability(support)
    if support:
        error = calibration_error(support_bins)
        figures.append(Figure("support_ece", error, len(support)))
    named = {figure.name: figure for figure in figures}
    return Evaluation(tuple(cases), named, curve, bins, support_bins)


# --- means ---------------------------------------------------------------------------------------


def _only(value: bool | float | None) -> Sequence[float]:
    return () if value is None else (float(value),)


def _hit(depth: int) -> Values:
    return lambda case: (float(0 < (case.rank or 0) <= depth),) if case.placed else ()


def _reciprocal(case: Case) -> Sequence[float]:
    return (1 / case.rank if case.rank else 0.0,) if case.placed else ()


def _rightly_answered(case: Case) -> Sequence[float]:
    if not case.row.answerable or not (case.row.answers or case.placed):
        return ()
    return (float(case.answered and bool(case.right)),)


def _marked(case: Case) -> Sequence[float]:
    known = case.marked is not None and case.row.answers
    return (overlap(case.marked or "", case.row.answers),) if known else ()


def _useful(case: Case) -> Sequence[float]:
    return (float(case.answered and case.nuggets.useful),) if case.nuggets else ()


def _words(case: Case) -> Sequence[float]:
    return (float(case.nuggets.words),) if case.nuggets and case.answered else ()


def _wrong(case: Case) -> Sequence[float]:
    return (float(not case.right),) if case.answered and case.right is not None else ()


_MEANS: Mapping[str, Values] = {
    "hit@1": _hit(1),
    "hit@5": _hit(5),
    "hit@10": _hit(10),
    "mrr@10": _reciprocal,
    "answered": lambda case: (float(case.answered),) if case.row.answerable else (),
    "right": _rightly_answered,
    "useful": _useful,
    "vital_recall": lambda case: (case.nuggets.recall,) if case.nuggets else (),
    "words": _words,
    "gold": lambda case: _only(case.gold),
    "f1": _marked,
    "page": lambda case: _only(case.page),
    "section": lambda case: _only(case.section),
    "sentences": lambda case: (float(case.sentences),) if case.answered else (),
    "quoted": lambda case: tuple(map(float, case.quoted)),
    "linked": lambda case: tuple(map(float, case.linked)),
    "self_cited": lambda case: tuple(map(float, case.self_cited)),
    "supported": lambda case: tuple(map(float, case.supported)),
    "verbatim": lambda case: tuple(map(float, case.verbatim)),
    "withheld": lambda case: tuple(map(float, case.withheld)),
    "refused": lambda case: () if case.row.answerable else (float(not case.answered),),
    "refusal_precision": lambda case: () if case.answered else (float(not case.row.answerable),),
    "coverage": lambda case: (float(case.answered),),
    "risk": _wrong,
}


def _means(cases: Sequence[Case]) -> Iterator[Figure]:
    kinds = sorted({case.row.kind for case in cases})
    for metric, values in _MEANS.items():
        yield from _mean(metric, "", values, cases)
        for kind in kinds if METRICS[metric].by_kind else ():
            of_kind = [case for case in cases if case.row.kind == kind]
            yield from _mean(metric, f".{kind}", values, of_kind)


def _mean(metric: str, suffix: str, values: Values, cases: Sequence[Case]) -> Iterator[Figure]:
    counted = [value for case in cases for value in values(case)]
    if counted:
        mean, count = fmean(counted), len(counted)
        interval = wilson(mean, count) if METRICS[metric].is_share else None
        yield Figure(f"{metric}{suffix}", mean, count, interval)


# --- separation and time -----------------------------------------------------------------------


def _separation(cases: Sequence[Case]) -> Iterator[Figure]:
    """Yield the AUROC of each unanswerable kind against comparable answerable questions.

    The confidence for a selection is computed on the selection, so selections are compared only
    with each other.
    """
    for kind in sorted({case.row.kind for case in cases if not case.row.answerable}):
        others = [case for case in cases if case.row.kind == kind and not case.row.answerable]
        selected = others[0].row.selection is not None
        answerable = [
            case.confidence
            for case in cases
            if case.row.answerable and (case.row.selection is not None) == selected
        ]
        if answerable:
            area = auroc(answerable, [case.confidence for case in others])
            yield Figure(f"auroc.{kind}", area, len(others))


STAGES: Mapping[str, Values] = {
    "query": lambda case: (case.timings.query_ms,),
    "search": lambda case: (case.timings.search_ms,),
    "writing": lambda case: (case.timings.generation_ms,) if case.answered else (),
    "total": lambda case: (case.timings.total_ms,),
    "refusal": lambda case: () if case.answered else (case.timings.total_ms,),
}


def _times(cases: Sequence[Case]) -> Iterator[Figure]:
    for stage, times in STAGES.items():
        taken = [time for case in cases for time in times(case)]
        for name, share in (("p50", 50), ("p95", 95)) if taken else ():
            yield Figure(f"ms.{stage}.{name}", float(np.percentile(taken, share)), len(taken))


def metric_of(name: str) -> Metric | None:
    """Return the metric of a figure name, with or without a kind as suffix."""
    if name in METRICS and not METRICS[name].only_by_kind:
        return METRICS[name]
    base, _, kind = name.partition(".")
    metric = METRICS.get(base)
    return metric if metric and kind and metric.by_kind else None


# --- targets -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """Minimum that a figure must reach, or maximum if lower is better."""

    name: str
    limit: float
    at_most: bool

    @property
    def sign(self) -> str:
        return "≤" if self.at_most else "≥"


@dataclass(frozen=True, slots=True)
class TargetResult:
    target: Target
    value: float | None  # None: not measured by the question set

    @property
    def met(self) -> bool:
        value, limit = self.value, self.target.limit
        return value is not None and (value <= limit if self.target.at_most else value >= limit)


def read_target(text: str) -> Target:
    name, _, value = text.partition("=")
    metric = metric_of(name.strip())
    if metric is None:
        raise InvalidInput(
            f"There is no figure {name.strip()!r}.",
            hint=f"Use {', '.join(METRICS)}; most also with a kind: refused.off_book.",
        )
    try:
        limit = float(value)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise InvalidInput(f"The bar {text!r} has no number.", hint="Write --bar answered=.93")
    return Target(name.strip(), limit, metric.lower_is_better)


def check_targets(targets: Sequence[Target], evaluation: Evaluation) -> tuple[TargetResult, ...]:
    return tuple(TargetResult(target, evaluation.value(target.name)) for target in targets)
