"""Compute named figures from graded cases. ``METRICS`` lists the names with descriptions.

A figure is a mean over the cases it applies to; it is absent if there are none. Most are also
available for one kind of question: ``refused.off_book``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bythebook.evaluation import stats
from bythebook.evaluation.grade import Case
from bythebook.evaluation.text_metrics import overlap

Values = Callable[[Case], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    says: str
    lower_is_better: bool = False
    by_kind: bool = True
    only_by_kind: bool = False


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
    curve: tuple[stats.CurvePoint, ...]
    bins: tuple[stats.Bin, ...]

    def value(self, name: str) -> float | None:
        figure = self.figures.get(name)
        return None if figure is None else figure.value


def measure(cases: Sequence[Case]) -> Evaluation:
    graded = [(case.confidence, case.right) for case in cases if case.right is not None]
    unknown = sum(case.right is None and bool(case.text) for case in cases)
    curve = stats.risk_coverage(graded, total=len(cases) - unknown) if graded else ()
    bins = stats.reliability(graded)
    figures = [*_means(cases), *_separation(cases), *_times(cases)]
    if graded:
        figures.append(Figure("aurc", stats.area_under(curve), len(graded)))
        figures.append(Figure("ece", stats.calibration_error(bins), len(graded)))
    return Evaluation(tuple(cases), {figure.name: figure for figure in figures}, curve, bins)


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


def _wrong(case: Case) -> Sequence[float]:
    return (float(not case.right),) if case.answered and case.right is not None else ()


_MEANS: tuple[tuple[Metric, Values], ...] = (
    (
        Metric("hit@1", "Share of the questions whose best passage stands in their own section."),
        _hit(1),
    ),
    (Metric("hit@5", "… one of whose five best passages does."), _hit(5)),
    (Metric("hit@10", "… one of whose ten best passages does."), _hit(10)),
    (
        Metric("mrr@10", "One divided by the rank of the first that does; 0 beyond ten."),
        _reciprocal,
    ),
    (
        Metric("answered", "Of the questions that the book answers, the share that was answered."),
        lambda case: (float(case.answered),) if case.row.answerable else (),
    ),
    (
        Metric("right", "Of the questions that the book answers, the share answered rightly."),
        _rightly_answered,
    ),
    (
        Metric("gold", "Of those answered, the share whose shown text contains a gold answer."),
        lambda case: _only(case.gold),
    ),
    (
        Metric("f1", "Token F1 of the words that the answer marks, where it marks any."),
        _marked,
    ),
    (
        Metric("page", "Of those answered, the share that cites the right page."),
        lambda case: _only(case.page),
    ),
    (
        Metric("section", "Of those answered, the share that cites the right section."),
        lambda case: _only(case.section),
    ),
    (
        Metric("sentences", "Sentences that an answer shows.", lower_is_better=True),
        lambda case: (float(case.sentences),) if case.answered else (),
    ),
    (
        Metric("quoted", "Of all citations, the share whose quote stands in its passage verbatim."),
        lambda case: tuple(map(float, case.quoted)),
    ),
    (
        Metric("linked", "Of all citations, the share whose address is its passage's own."),
        lambda case: tuple(map(float, case.linked)),
    ),
    (
        Metric("supported", "Of all sentences, the share that the cited passages support."),
        lambda case: tuple(map(float, case.supported)),
    ),
    (
        Metric("refused", "Of the questions that the book does not answer, the share refused."),
        lambda case: () if case.row.answerable else (float(not case.answered),),
    ),
    (
        Metric("refusal_precision", "Of all refusals, the share that was right.", by_kind=False),
        lambda case: () if case.answered else (float(not case.row.answerable),),
    ),
    (
        Metric("coverage", "Of all questions, the share that was answered.", by_kind=False),
        lambda case: (float(case.answered),),
    ),
    (
        Metric("risk", "Of all answers shown, the share that is wrong.", True, by_kind=False),
        _wrong,
    ),
)

_NO_SHARES = {"mrr@10", "f1", "sentences"}


def _means(cases: Sequence[Case]) -> Iterator[Figure]:
    kinds = sorted({case.row.kind for case in cases})
    for metric, values in _MEANS:
        yield from _mean(metric.name, metric, values, cases)
        for kind in kinds if metric.by_kind else ():
            of_kind = [case for case in cases if case.row.kind == kind]
            yield from _mean(f"{metric.name}.{kind}", metric, values, of_kind)


def _mean(name: str, metric: Metric, values: Values, cases: Sequence[Case]) -> Iterator[Figure]:
    counted = [value for case in cases for value in values(case)]
    if counted:
        mean = stats.mean(counted)
        is_share = metric.name not in _NO_SHARES
        yield Figure(
            name, mean, len(counted), stats.wilson(mean, len(counted)) if is_share else None
        )


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
            area = stats.auroc(answerable, [case.confidence for case in others])
            yield Figure(f"auroc.{kind}", area, len(others))


STAGES: dict[str, Callable[[Case], Sequence[float]]] = {
    "query": lambda case: (case.timings.query_ms,),
    "search": lambda case: (case.timings.search_ms,),
    "writing": lambda case: (case.timings.generation_ms,) if case.answered else (),
    "total": lambda case: (case.timings.total_ms,),
    "refusal": lambda case: () if case.answered else (case.timings.total_ms,),
}


def _times(cases: Sequence[Case]) -> Iterator[Figure]:
    for stage, times in STAGES.items():
        taken = [time for case in cases for time in times(case)]
        for name, share in (("p50", 0.5), ("p95", 0.95)) if taken else ():
            yield Figure(f"ms.{stage}.{name}", stats.percentile(taken, share), len(taken))


_STAGE_SAYS = {
    "query": "embedding the question",
    "search": "searching",
    "writing": "writing and checking an answer",
    "total": "a whole reply",
    "refusal": "a whole reply that is a refusal",
}

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *(metric for metric, _ in _MEANS),
        Metric(
            "auroc",
            "How often an answerable question has more confidence than one of this kind.",
            only_by_kind=True,
        ),
        Metric(
            "aurc",
            "Mean risk over all coverages: the area under the risk–coverage curve.",
            lower_is_better=True,
            by_kind=False,
        ),
        Metric(
            "ece",
            "How far confidence is from the share of right answers, over ten bins.",
            lower_is_better=True,
            by_kind=False,
        ),
        *(
            Metric(
                f"ms.{stage}.{name}",
                f"Milliseconds of {says}, {words}.",
                lower_is_better=True,
                by_kind=False,
            )
            for stage, says in _STAGE_SAYS.items()
            for name, words in (("p50", "the median"), ("p95", "95 % are faster"))
        ),
    )
}


def metric_of(name: str) -> Metric | None:
    """Return the metric of a figure name, with or without a kind as suffix."""
    if name in METRICS and not METRICS[name].only_by_kind:
        return METRICS[name]
    base, _, kind = name.partition(".")
    metric = METRICS.get(base)
    return metric if metric and kind and metric.by_kind else None
