"""Print the tables of an evaluation to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bythebook.evaluation.metrics import Evaluation
from bythebook.evaluation.tables import Grid, grids, headline, targets_grid
from bythebook.evaluation.targets import TargetResult
from bythebook.language.text import one_line

_NAMES_WIDTH = 24  # length of the longest kind of question: all columns fit into 80
_STYLES = {"met": "green", "missed": "bold red"}


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
