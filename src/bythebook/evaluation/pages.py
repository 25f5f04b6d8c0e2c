"""The evaluation as HTML: the report, and the trust card of a book. No script, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bythebook import __version__
from bythebook.drawing import Axes, render
from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import METRICS, Bin, CurvePoint, Evaluation, Figure, TargetResult
from bythebook.evaluation.questions import MOST_WORDS
from bythebook.evaluation.report import BookFacts, Failure, grids, headline, targets_grid

NOT_MEASURED = "not measured"
_TILES = {
    "answered": "answered when the book has the answer",
    "right": "answered correctly",
    "useful": "useful by their nuggets",
    "refused": "refused when it has none",
    "hit@5": "right section in the top five",
    "supported": "sentences supported",
    "ms.total.p95": "ms, 95th percentile of replies",
}
# The figures of the card: name, title, and what is counted.
_CARD_TILES = (
    ("answered", "Coverage", "of the questions that the book answers were answered"),
    ("right", "Right answers", "of the questions that the book answers were answered correctly"),
    ("wrongly_refused", "Wrongly refused", "of the questions that the book answers were refused"),
    ("refused", "Refusals", "of the questions that the book does not answer were refused"),
    ("risk", "Wrong answers", "of the answers shown were wrong"),
    ("supported", "Verified", "of the sentences shown are supported by a cited passage"),
    ("verbatim", "Verbatim", "of the sentences shown are in the book word for word"),
    ("withheld", "Withheld", "of the sentences written were withheld by the check"),
)
_HISTOGRAM_BARS = 20
_TOO_FEW = 0.05  # share of the questions: the risk of very few answers is noise


def report(
    evaluation: Evaluation,
    setup: Mapping[str, object],
    results: Sequence[TargetResult],
    failures: Sequence[Failure],
) -> str:
    scored = [(case, case.nuggets) for case in evaluation.cases if case.nuggets]
    scored.sort(key=lambda each: (each[1].useful, each[1].recall))
    return render(
        "report.html",
        **_confidence(evaluation, setup),
        headline=headline(evaluation, setup),
        tiles=[
            _tile(evaluation.figures[name], label)
            for name, label in _TILES.items()
            if name in evaluation.figures
        ],
        bars=targets_grid(results) if results else None,
        kinds=_histograms(evaluation.cases),
        grids=list(grids(evaluation)),
        nuggets=[case for case, _ in scored],
        most_words=MOST_WORDS,
        failures=failures,
        metrics={
            name: metric
            for name, metric in METRICS.items()
            if any(known.startswith(name) for known in evaluation.figures)
        },
    )


def trust_card(evaluation: Evaluation, facts: BookFacts, setup: Mapping[str, object]) -> str:
    return render(
        "card.html",
        **_confidence(evaluation, setup),
        facts=facts,
        setup={**setup, "embedder": facts.embedder or setup["embedder"]},
        tiles=[
            _card_tile(figure_of(evaluation, name), title, label)
            for name, title, label in _CARD_TILES
        ],
        answerable=sum(case.row.answerable for case in evaluation.cases),
        version=__version__,
    )


def figure_of(evaluation: Evaluation, name: str) -> Figure | None:
    """Return a figure of the card; ``wrongly_refused`` is the complement of ``answered``."""
    if name != "wrongly_refused":
        return evaluation.figures.get(name)
    answered = evaluation.figures.get("answered")
    if answered is None or answered.interval is None:
        return None
    low, high = answered.interval
    return Figure(name, 1 - answered.value, answered.count, (1 - high, 1 - low))


def _tile(figure: Figure, label: str) -> dict[str, str]:
    if figure.interval is None:
        return {"value": f"{figure.value:.0f}", "label": label, "range": f"n = {figure.count}"}
    low, high = (f"{100 * bound:.1f}".removesuffix(".0") for bound in figure.interval)
    return {"value": f"{figure.value:.1%}", "label": label, "range": f"{low} to {high} %"}


def _card_tile(figure: Figure | None, title: str, label: str) -> dict[str, str]:
    tile = {"title": title, "label": label, "value": NOT_MEASURED, "range": ""}
    if figure is None or figure.interval is None:
        return tile
    low, high = (f"{100 * bound:.0f}" for bound in figure.interval)
    return tile | {
        "value": f"{figure.value:.1%}",
        "range": f"{low} to {high} %, n = {figure.count}",
    }


# --- plots ---------------------------------------------------------------------------------------


def _confidence(evaluation: Evaluation, setup: Mapping[str, object]) -> dict[str, Any]:
    """Return what the plots of confidence need."""
    coverage, risk = evaluation.value("coverage"), evaluation.value("risk")
    here = None if coverage is None or risk is None else (coverage, risk)
    return {
        "evaluation": evaluation,
        "min_score": float(str(setup["min_score"])),
        "curve": _curve(evaluation.curve, here) if evaluation.curve else None,
        "bin_rows": _bin_rows,
        "unit_axes": Axes(),
        "low_axes": Axes(height=150.0),
    }


def _curve(curve: Sequence[CurvePoint], here: tuple[float, float] | None) -> dict[str, Any]:
    """Return the curve with the point at the minimum score, and a row for each 10 %."""
    points = [(point.coverage, point.risk) for point in curve if point.coverage >= _TOO_FEW]
    points = points or [(point.coverage, point.risk) for point in curve]
    tenths = [
        next(point for point in curve if point.coverage >= tenth / 10)
        for tenth in range(1, 11)
        if curve[-1].coverage >= tenth / 10
    ]
    return {
        "axes": Axes.above(risk for _, risk in [*points, *([here] if here else [])]),
        "points": points,
        "here": here,
        "numbers": [(f"{p.coverage:.3f}", f"{p.risk:.3f}", f"{p.confidence:.3f}") for p in tenths],
    }


def _bin_rows(bins: Sequence[Bin]) -> list[tuple[str, ...]]:
    return [(f"{each.confidence:.3f}", f"{each.right:.3f}", str(each.count)) for each in bins]


def _histograms(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Count the confidences of each kind of question."""
    kinds: dict[tuple[bool, str], list[int]] = {}
    for case in cases:
        counts = kinds.setdefault((not case.row.answerable, case.row.kind), [0] * _HISTOGRAM_BARS)
        counts[min(int(case.confidence * _HISTOGRAM_BARS), _HISTOGRAM_BARS - 1)] += 1
    return [
        {"name": kind, "answerable": not no, "counts": counts}
        for (no, kind), counts in sorted(kinds.items())
    ]
