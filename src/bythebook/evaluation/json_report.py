"""JSON document of an evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bythebook.evaluation.failures import Failure
from bythebook.evaluation.metrics import Evaluation
from bythebook.evaluation.targets import Verdict

_DIGITS = 4


def document(
    evaluation: Evaluation,
    setup: Mapping[str, object],
    verdicts: Sequence[Verdict],
    failures: Sequence[Failure],
) -> dict[str, Any]:
    """Return the document; figures have the names that ``--bar`` accepts."""
    figures = evaluation.figures.values()
    return {
        "setup": dict(setup),
        "questions": dict(sorted(Counter(case.row.kind for case in evaluation.cases).items())),
        "figures": {figure.name: round(figure.value, _DIGITS) for figure in figures},
        "counts": {figure.name: figure.count for figure in figures},
        "intervals": {
            figure.name: [round(bound, _DIGITS) for bound in figure.interval]
            for figure in figures
            if figure.interval
        },
        "bars": [_verdict(verdict) for verdict in verdicts],
        "risk_coverage": [
            {
                "confidence": round(point.confidence, _DIGITS),
                "coverage": round(point.coverage, _DIGITS),
                "risk": round(point.risk, _DIGITS),
            }
            for point in evaluation.curve
        ],
        "reliability": [
            {
                "from": each.low,
                "to": each.high,
                "count": each.count,
                "confidence": round(each.confidence, _DIGITS),
                "right": round(each.right, _DIGITS),
            }
            for each in evaluation.bins
        ],
        "worst": [_failure(failure) for failure in failures],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    value = verdict.value
    return {
        "name": verdict.bar.name,
        "at_most" if verdict.bar.at_most else "at_least": verdict.bar.limit,
        "value": None if value is None else round(value, _DIGITS),
        "met": verdict.met,
    }


def _failure(failure: Failure) -> dict[str, Any]:
    case = failure.case
    return {
        "id": case.row.id,
        "kind": case.row.kind,
        "question": case.row.question,
        "answers": list(case.row.answers),
        "fault": str(failure.fault),
        "why": failure.why,
        "confidence": round(case.confidence, _DIGITS),
        "shown": case.text if case.answered else None,
        "cited": list(case.cited),
    }
