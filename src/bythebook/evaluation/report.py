"""The evaluation for the terminal and as JSON: tables, targets and the worst failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain, zip_longest
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bythebook.evaluation.grade import DEEPEST_RANK, Case
from bythebook.evaluation.metrics import STAGES, Bin, Evaluation, TargetResult
from bythebook.evaluation.questions import NuggetScore
from bythebook.interfaces.store import Generation
from bythebook.language.text import one_line
from bythebook.text.outline import outline
from bythebook.types import Passage

# --- worst failures ------------------------------------------------------------------------------


class Fault(StrEnum):
    UNFOUNDED = "answered what the book does not say"
    MISSED = "answered, but not with the answer"
    WITHHELD = "refused what the book says"


@dataclass(frozen=True, slots=True)
class Failure:
    case: Case
    fault: Fault
    why: str

    @property
    def facts(self) -> dict[str, str]:
        case = self.case
        expected = (case.row.heading or "") if case.row.answerable else "a refusal"
        return {
            "why": self.why,
            "expected": " / ".join(case.row.answers[:3]) or expected,
            "shown" if case.answered else "withheld": case.text,
            "cited": "\n".join(dict.fromkeys(case.cited)),
            "best passage": "" if case.cited else case.best or "",
            "question": f"{case.row.id} ({case.row.kind})",
        }


def worst(cases: Sequence[Case], count: int) -> tuple[Failure, ...]:
    """Return the most confident mistakes, alternating between the kinds of fault."""
    groups = [
        sorted(
            (case for case in cases if _fault(case) is fault),
            key=lambda case: (-_gravity(case), case.row.id),
        )
        for fault in Fault
    ]
    turns = chain.from_iterable(zip_longest(*groups))
    failed = [case for case in turns if case is not None][:count]
    return tuple(
        Failure(case, fault, _why(case, fault)) for case in failed if (fault := _fault(case))
    )


def _fault(case: Case) -> Fault | None:
    if case.answered:
        if case.right is not False:
            return None
        return Fault.MISSED if case.row.answerable else Fault.UNFOUNDED
    return Fault.WITHHELD if case.row.answerable else None


def _gravity(case: Case) -> float:
    """Return the distance of the confidence from the correct value."""
    return case.confidence if case.answered else 1 - case.confidence


def _why(case: Case, fault: Fault) -> str:
    score = f"The best passage scored {case.confidence:.2f}."
    if fault is Fault.UNFOUNDED:
        return score
    if fault is Fault.MISSED:
        return f"{_location(case)} {_citing(case)}".strip()
    reason = str(case.refusal or "").replace("_", " ")
    return f"Refused because of {reason}. {score} {_location(case)}".strip()


def _location(case: Case) -> str:
    if not case.placed:
        return ""
    if case.rank is None:
        return f"The right section is not among the {DEEPEST_RANK} best passages."
    return f"The right section has rank {case.rank}."


def _citing(case: Case) -> str:
    if case.section:
        return "The answer cites it, but shows other sentences."
    if case.page:
        return "The answer cites another section of the page."
    return "The answer cites another page." if case.page is False else ""


# --- tables --------------------------------------------------------------------------------------


_ANSWERS = ("answered", "right", "gold", "f1", "page", "section")
_NUGGETS = ("useful", "vital_recall", "words")
_FINDING = ("hit@1", "hit@5", "hit@10", "mrr@10")
_REFUSING = ("refused", "auroc")
_CITING = ("sentences", "quoted", "linked", "self_cited", "supported")
_CHECKING = ("verbatim", "withheld", "support_ece")
_KNOWING = ("coverage", "risk", "refusal_precision", "aurc", "ece")

_NAMES_WIDTH = 24  # length of the longest kind of question: all columns fit into 80
_STYLES = {"met": "green", "missed": "bold red"}


@dataclass(frozen=True, slots=True)
class Grid:
    """Table whose title is the header of the first column, which has the row names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(evaluation: Evaluation) -> Iterator[Grid]:
    answerable = _kinds(evaluation, answerable=True)
    placed = {kind: n for kind, n in answerable.items() if f"hit@1.{kind}" in evaluation.figures}
    yield from _by_kind("The book answers", answerable, _ANSWERS, evaluation)
    keyed = {kind: n for kind, n in answerable.items() if f"useful.{kind}" in evaluation.figures}
    yield from _by_kind("Its facts are in the answer", keyed, _NUGGETS, evaluation)
    yield from _by_kind("Its section is found", placed, _FINDING, evaluation)
    unanswerable = _kinds(evaluation, answerable=False)
    yield from _by_kind("The book does not answer", unanswerable, _REFUSING, evaluation)
    for title, names in (
        ("Answers and citations", _CITING),
        ("Check of sentences", _CHECKING),
        ("Knowing when to answer", _KNOWING),
    ):
        measured = [name for name in names if name in evaluation.figures]
        if measured:
            yield Grid(title, tuple(measured), (("all", *_cells(measured, evaluation)),))
    times = tuple(
        (words, *_cells([f"ms.{stage}.{name}" for stage in STAGES], evaluation))
        for name, words in (("p50", "median"), ("p95", "95th percentile"))
    )
    yield Grid("Milliseconds", tuple(STAGES), times)


def targets_grid(results: Sequence[TargetResult]) -> Grid:
    rows = [
        (
            result.target.name,
            _shown(result.value) or "not measured",
            f"{result.target.sign} {_shown(result.target.limit)}",
            "met" if result.met else "missed",
        )
        for result in results
    ]
    return Grid("Bars", ("is", "must be", ""), tuple(rows))


def headline(evaluation: Evaluation, setup: Mapping[str, object]) -> str:
    """Return the number of questions and the settings, on one line."""
    values = (f"{name} {value}" for name, value in setup.items())
    return " · ".join((f"{len(evaluation.cases)} questions", *values))


def _shown(value: float | None) -> str:
    """Format a value with three digits as in result tables: .975, 1.000, 26.5."""
    if value is None:
        return ""
    return f"{value:.3f}".removeprefix("0") if value <= 1 else f"{value:.1f}"


def _kinds(evaluation: Evaluation, *, answerable: bool) -> dict[str, int]:
    kinds = [case.row.kind for case in evaluation.cases if case.row.answerable == answerable]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _by_kind(
    title: str, kinds: Mapping[str, int], names: Sequence[str], evaluation: Evaluation
) -> Iterator[Grid]:
    measured = [
        name for name in names if any(f"{name}.{kind}" in evaluation.figures for kind in kinds)
    ]
    rows = [
        (kind, str(count), *_cells([f"{name}.{kind}" for name in measured], evaluation))
        for kind, count in kinds.items()
    ]
    if len(rows) > 1:
        rows.append(("all", str(sum(kinds.values())), *_cells(measured, evaluation)))
    if rows:
        yield Grid(title, ("asked", *measured), tuple(rows))


def _cells(names: Sequence[str], evaluation: Evaluation) -> list[str]:
    return [_shown(evaluation.value(name)) for name in names]


# --- on the terminal -----------------------------------------------------------------------------


def print_evaluation(
    evaluation: Evaluation,
    setup: Mapping[str, object],
    results: Sequence[TargetResult],
    console: Console,
) -> None:
    console.print(headline(evaluation, setup), style="dim", markup=False)
    for grid in grids(evaluation):
        console.print(_table(grid))
    if results:
        console.print(_table(targets_grid(results)))


def _table(grid: Grid) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    title = Text(grid.title, style="bold not dim")
    table.add_column(title, min_width=_NAMES_WIDTH, overflow="fold")
    for name in grid.columns:
        table.add_column(name.replace("_", " "), justify="right", min_width=4)
    for name, *cells in grid.rows:
        is_total = name == "all" and len(grid.rows) > 1
        styled = [Text(cell, _STYLES.get(cell, "")) for cell in cells]
        table.add_row(Text(one_line(name)), *styled, style="bold" if is_total else "")
    return table


# --- the book ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BookFacts:
    """The evaluated book. Its title is that of its first page."""

    title: str
    embedder: str  # that made the index
    pages: int
    passages: int
    indexed_at: datetime | None


def book_facts(passages: Iterable[Passage], generation: Generation | None) -> BookFacts:
    pages = outline(passages)
    return BookFacts(
        title=pages[0].title if pages else "",
        embedder=generation.embedder if generation else "",
        pages=len(pages),
        passages=sum(page.passages for page in pages),
        indexed_at=generation.published_at if generation else None,
    )


# --- JSON ----------------------------------------------------------------------------------------


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
    found: dict[str, Any] = {
        "book": asdict(facts),
        "setup": dict(setup),
        "questions": dict(sorted(Counter(case.row.kind for case in evaluation.cases).items())),
        "figures": {figure.name: figure.value for figure in figures},
        "counts": {figure.name: figure.count for figure in figures},
        "intervals": {figure.name: figure.interval for figure in figures if figure.interval},
        "bars": [_result(result) for result in results],
        "risk_coverage": [asdict(point) for point in evaluation.curve],
        "reliability": _bins(evaluation.bins),
        "support_reliability": _bins(evaluation.support_bins),
        "nuggets": [_nuggets(case, case.nuggets) for case in evaluation.cases if case.nuggets],
        "worst": [_failure(failure) for failure in failures],
    }
    return {name: _rounded(value) for name, value in found.items()}


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
        "value": result.value,
        "met": result.met,
    }


def _nuggets(case: Case, score: NuggetScore) -> dict[str, Any]:
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
