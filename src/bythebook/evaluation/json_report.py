"""JSON document of an evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

from bythebook.evaluation.failures import Failure
from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import Evaluation
from bythebook.evaluation.pages import BookFacts
from bythebook.evaluation.stats import Bin
from bythebook.evaluation.targets import TargetResult

_DIGITS = 4
_BIN_FIELDS = ("from", "to", "count", "confidence", "right")


def document(
    evaluation: Evaluation,
    facts: BookFacts,
    setup: Mapping[str, object],
    results: Sequence[TargetResult],
    failures: Sequence[Failure],
) -> dict[str, Any]:
    """Return the document; figures have the names that ``--bar`` accepts."""
    figures = evaluation.figures.values()
    return {
        "book": asdict(facts),
        "setup": dict(setup),
        "questions": dict(sorted(Counter(case.row.kind for case in evaluation.cases).items())),
        "figures": _rounded({figure.name: figure.value for figure in figures}),
        "counts": {figure.name: figure.count for figure in figures},
        "intervals": _rounded({one.name: one.interval for one in figures if one.interval}),
        "bars": [_result(result) for result in results],
        "risk_coverage": _rounded([asdict(point) for point in evaluation.curve]),
        "reliability": _rounded(_bins(evaluation.bins)),
        "support_reliability": _rounded(_bins(evaluation.support_bins)),
        "nuggets": _rounded([_nuggets(case) for case in evaluation.cases if case.nuggets]),
        "worst": _rounded([_failure(failure) for failure in failures]),
    }


def _bins(bins: Sequence[Bin]) -> list[dict[str, float]]:
    return [dict(zip(_BIN_FIELDS, astuple(each), strict=True)) for each in bins]


def _rounded(value: Any) -> Any:
    """Round every float in a document."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def _result(result: TargetResult) -> dict[str, Any]:
    return {
        "name": result.target.name,
        "at_most" if result.target.at_most else "at_least": result.target.limit,
        "value": _rounded(result.value),
        "met": result.met,
    }


def _nuggets(case: Case) -> dict[str, Any]:
    score = case.nuggets
    assert score is not None
    return {
        "id": case.row.id,
        "kind": case.row.kind,
        "question": case.row.question,
        "answer": case.text if case.answered else None,
        "useful": score.useful,
        "vital_recall": score.recall,
        "words": score.words,
        "missing": list(score.missing),
        "forbidden": list(score.forbidden),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    case = failure.case
    return {
        "id": case.row.id,
        "kind": case.row.kind,
        "question": case.row.question,
        "answers": case.row.answers,
        "fault": str(failure.fault),
        "why": failure.why,
        "confidence": case.confidence,
        "shown": case.text if case.answered else None,
        "cited": case.cited,
    }
