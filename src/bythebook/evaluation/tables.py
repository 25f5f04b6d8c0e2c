"""Tables of an evaluation as plain cells, for the HTML report, and printed to the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bythebook.evaluation.metrics import STAGES, Evaluation
from bythebook.evaluation.targets import TargetResult
from bythebook.language.text import one_line

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
