"""Self-contained HTML report of an evaluation: no script, no network, dark and light theme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from string import Template

from bythebook.drawing.markup import Markup, element, joined, text
from bythebook.evaluation import plots
from bythebook.evaluation.failures import Failure
from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import METRICS, Evaluation
from bythebook.evaluation.nuggets import MOST_WORDS, NuggetScore
from bythebook.evaluation.stats import Bin, CurvePoint
from bythebook.evaluation.tables import Grid, grids, headline, targets_grid
from bythebook.evaluation.targets import TargetResult

_TILES = (
    ("answered", "answered when the book has the answer"),
    ("right", "answered correctly"),
    ("useful", "useful by their nuggets"),
    ("refused", "refused when it has none"),
    ("hit@5", "right section in the top five"),
    ("supported", "sentences supported"),
    ("ms.total.p95", "ms, 95th percentile of replies"),
)
_NOT_MEASURED = element("p", "not measured", class_="quiet")


def report(
    evaluation: Evaluation,
    setup: Mapping[str, object],
    results: Sequence[TargetResult],
    failures: Sequence[Failure],
) -> str:
    """Return the page. ``report.html`` forbids scripts, in case escaping fails."""
    folder = resources.files("bythebook.evaluation")
    min_score = float(str(setup["min_score"]))
    tiles = (_tile(name, label, evaluation) for name, label in _TILES if name in evaluation.figures)
    return Template(folder.joinpath("report.html").read_text("utf-8")).substitute(
        style=folder.joinpath("report.css").read_text("utf-8"),
        headline=text(headline(evaluation, setup)),
        tiles=joined(*tiles),
        bars=_bars(results),
        curves=joined(*confidence_figures(evaluation, min_score)),
        histograms=joined(*_histograms(evaluation.cases, min_score)),
        tables=joined(*(_card(_table(grid)) for grid in grids(evaluation))),
        nuggets=_nuggets(evaluation.cases),
        worst=_worst(failures),
        names=_names(evaluation),
    )


def _tile(name: str, label: str, evaluation: Evaluation) -> Markup:
    figure = evaluation.figures[name]
    if figure.interval is None:
        value, about = f"{figure.value:.0f}", f"n = {figure.count}"
    else:
        low, high = (f"{100 * bound:.1f}".removesuffix(".0") for bound in figure.interval)
        value, about = f"{figure.value:.1%}", f"{low} to {high} %"
    return element("li", element("b", value), label, element("small", about))


def _bars(results: Sequence[TargetResult]) -> Markup:
    if not results:
        return joined()
    return _section("Bars", "The targets of this run.", _card(_table(targets_grid(results))))


# --- confidence ----------------------------------------------------------------------------------


def confidence_figures(
    evaluation: Evaluation, min_score: float, *, numbers: bool = True
) -> Iterator[Markup]:
    """Yield the risk–coverage curve and the two reliability diagrams, with tables of ``numbers``.

    What was not measured has no plot, but its caption.
    """
    coverage, risk = evaluation.value("coverage"), evaluation.value("risk")
    here = None if coverage is None or risk is None else (coverage, risk)
    curve, bins, support = evaluation.curve, evaluation.bins, evaluation.support_bins
    yield _figure(
        "Risk and coverage",
        "Error rate by coverage, if the answers with the highest confidence are given first.",
        plots.risk_coverage(curve, here, min_score=min_score) if curve else _NOT_MEASURED,
        *((_curve_numbers(curve),) if curve and numbers else ()),
    )
    yield _figure(
        "Reliability of confidence",
        "Share of right answers by confidence. Above the line the confidence is too low, below it "
        f"too high. Each dot has its number of questions. {_error(evaluation, 'ece')}",
        plots.reliability(
            bins,
            "Reliability diagram",
            across="confidence",
            upwards="share of answers right",
            counted="questions",
        )
        if bins
        else _NOT_MEASURED,
        *((_bin_numbers(bins, "questions"),) if bins and numbers else ()),
    )
    yield _figure(
        "Reliability of the check of sentences",
        "Share of claims that are true by the probability of support that the check gives. The "
        f"claims are reworded and falsified sentences of the book. "
        f"{_error(evaluation, 'support_ece')}",
        plots.reliability(
            support,
            "Reliability diagram of support",
            across="probability of support",
            upwards="share of claims true",
            counted="claims",
        )
        if support
        else _NOT_MEASURED,
        *((_bin_numbers(support, "claims"),) if support and numbers else ()),
    )


def _error(evaluation: Evaluation, name: str) -> str:
    figure = evaluation.figures.get(name)
    if figure is None:
        return ""
    return f"Expected calibration error {figure.value:.3f} (n = {figure.count})."


def _histograms(cases: Sequence[Case], min_score: float) -> list[Markup]:
    groups: dict[tuple[bool, str], list[float]] = {}
    for case in cases:
        groups.setdefault((not case.row.answerable, case.row.kind), []).append(case.confidence)
    return [
        _figure(
            kind,
            f"{len(values)} questions that the book {'does not answer' if no else 'answers'}",
            plots.histogram(values, min_score=min_score, answerable=not no),
        )
        for (no, kind), values in sorted(groups.items())
    ]


def _figure(title: str, about: str, *content: Markup) -> Markup:
    caption = element("figcaption", element("b", title), element("span", about))
    return element("figure", caption, *content, class_="card")


def _curve_numbers(curve: Sequence[CurvePoint]) -> Markup:
    """Return the curve at each 10 % of coverage, as far as it reaches."""
    tenths = [
        next(point for point in curve if point.coverage >= tenth / 10)
        for tenth in range(1, 11)
        if curve[-1].coverage >= tenth / 10
    ]
    rows = [(f"{p.coverage:.3f}", f"{p.risk:.3f}", f"{p.confidence:.3f}") for p in tenths]
    return _numbers(("answered", "wrong", "confidence"), rows)


def _bin_numbers(bins: Sequence[Bin], counted: str) -> Markup:
    rows = [(f"{each.confidence:.3f}", f"{each.right:.3f}", str(each.count)) for each in bins]
    return _numbers(("predicted", "right", counted), rows)


def _numbers(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    cells = [element("tr", *map(_cell, row)) for row in rows]
    summary = element("summary", "Numbers")
    return element("details", summary, _table_of(columns, cells), class_="numbers")


# --- tables --------------------------------------------------------------------------------------


def _table(grid: Grid) -> Markup:
    rows = [
        element("tr", element("th", name, scope="row"), *map(_cell, cells))
        for name, *cells in grid.rows
    ]
    return _table_of((grid.title, *grid.columns), rows)


def _cell(value: str) -> Markup:
    classes = {"met": "pill met", "missed": "pill"}.get(value)
    return element("td", element("span", value, class_=classes) if classes else value)


def _table_of(columns: Sequence[str], rows: Sequence[Markup]) -> Markup:
    head = [element("th", name.replace("_", " "), scope="col") for name in columns]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="scroll")


# --- nuggets -------------------------------------------------------------------------------------


def _nuggets(cases: Sequence[Case]) -> Markup:
    """Return the questions with nuggets, answers and missing nuggets; those not useful first."""
    scored = [(case, case.nuggets) for case in cases if case.nuggets]
    if not scored:
        return joined()
    scored.sort(key=lambda each: (each[1].useful, each[1].recall))
    head = [element("th", name, scope="col") for name in ("question", "answer", "missing")]
    rows = [_nugget_row(case, score) for case, score in scored]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return _section(
        "Nuggets",
        f"An answer is useful if it has two thirds of the vital nuggets, nothing forbidden, and "
        f"at most {MOST_WORDS} words. The answers that are not come first.",
        element("div", element("div", table, class_="scroll"), class_="card nuggets"),
    )


def _nugget_row(case: Case, score: NuggetScore) -> Markup:
    about = f"{case.row.id} ({case.row.kind}), {score.found} of {score.vital}"
    missing = [element("li", element("code", name)) for name in score.missing]
    missing += [element("li", "forbidden: ", element("code", name)) for name in score.forbidden]
    pill = "pill met" if score.useful else "pill"
    words = f"{score.words} words" if case.answered else f"refused: {case.refusal}"
    return element(
        "tr",
        element(
            "td",
            element("b", case.row.question, dir="auto"),
            element("small", about),
            element("span", "useful" if score.useful else "not useful", class_=pill),
        ),
        element("td", case.text if case.answered else "", element("small", words), dir="auto"),
        element("td", element("ul", *missing)),
    )


# --- worst failures and metric names -------------------------------------------------------------


def _worst(failures: Sequence[Failure]) -> Markup:
    if not failures:
        return joined()
    return _section(
        f"The worst {len(failures)}",
        "The most confident errors, alternating between their types.",
        *(_failure(failure) for failure in failures),
    )


def _failure(failure: Failure) -> Markup:
    case = failure.case
    facts = {
        "why": failure.why,
        "expected": " / ".join(case.row.answers[:3]) or _expected(case),
        "shown" if case.answered else "withheld": case.text,
        "cited": "\n".join(dict.fromkeys(case.cited)),
        "best passage": "" if case.cited else case.best or "",
        "question": f"{case.row.id} ({case.row.kind})",
    }
    pairs = [
        joined(element("dt", name), element("dd", value, dir="auto"))
        for name, value in facts.items()
        if value
    ]
    summary = element(
        "summary",
        element("span", case.row.question, class_="question", dir="auto"),
        element("span", f"confidence {case.confidence:.2f}", class_="quiet"),
        element("span", str(failure.fault), class_="pill"),
    )
    return element("details", summary, element("dl", *pairs), class_="case")


def _expected(case: Case) -> str:
    return case.row.heading or "" if case.row.answerable else "a refusal"


def _names(evaluation: Evaluation) -> Markup:
    pairs = [
        joined(element("dt", element("code", name)), element("dd", metric.description))
        for name, metric in METRICS.items()
        if any(known.startswith(name) for known in evaluation.figures)
    ]
    return joined(*pairs)


def _card(content: Markup) -> Markup:
    return element("div", content, class_="card")


def _section(title: str, about: str, *content: Markup) -> Markup:
    lead = element("p", about, class_="lead")
    return element("section", element("h2", title), lead, *content)
