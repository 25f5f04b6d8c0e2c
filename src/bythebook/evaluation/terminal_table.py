"""Print the tables of an evaluation to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bythebook.evaluation.metrics import Evaluation
from bythebook.evaluation.tables import Grid, grids, shown
from bythebook.evaluation.targets import Verdict

_NAMES_WIDTH = 24  # length of the longest kind of question: all columns fit into 80


def print_evaluation(
    evaluation: Evaluation,
    setup: Mapping[str, object],
    verdicts: Sequence[Verdict],
    console: Console,
) -> None:
    said = " · ".join(f"{name} {value}" for name, value in setup.items())
    console.print(f"{len(evaluation.cases)} questions · {said}", style="dim", markup=False)
    for grid in grids(evaluation):
        console.print(_table(grid))
    if verdicts:
        console.print(_bars(verdicts))


def _table(grid: Grid) -> Table:
    table = _empty(grid.title, grid.columns)
    *rows, last = grid.rows
    for row in rows:
        table.add_row(*map(Text, row))
    table.add_row(*map(Text, last), style="bold" if rows and last[0] == "all" else "")
    return table


def _empty(title: str, columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    title_text = Text(title, style="bold not dim")
    table.add_column(title_text, min_width=_NAMES_WIDTH, overflow="fold")
    for name in columns:
        table.add_column(name.replace("_", " "), justify="right", min_width=4)
    return table


def _bars(verdicts: Sequence[Verdict]) -> Table:
    table = _empty("Bars", ("is", "must be", ""))
    for verdict in verdicts:
        value = "not measured" if verdict.value is None else shown(verdict.value)
        state = Text("met", "green") if verdict.met else Text("missed", "bold red")
        limit = f"{verdict.bar.sign} {shown(verdict.bar.limit)}"
        table.add_row(Text(verdict.bar.name), value, limit, state)
    return table
