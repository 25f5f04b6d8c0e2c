"""How far a long piece of work is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

import typer

_EVERY_SECONDS = 5.0


class Progress:
    """Silent when asked to be; always on standard error, so that output stays clean."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._said = time.perf_counter()
        self._paces: dict[str, tuple[float, int]] = {}  # when it was first looked at, and how far

    def __enter__(self) -> Progress:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            console = Console(stderr=True)
            self._bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, what: str, done: int, total: int | None) -> None:
        self._paces.setdefault(what, (time.perf_counter(), done))
        if self._bar is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bar.add_task(what, total=total)
            self._bar.update(self._tasks[what], completed=done, total=total)
        elif not self._quiet and time.perf_counter() - self._said > _EVERY_SECONDS:
            self._said = time.perf_counter()
            typer.echo(f"{what}: {done}{self._rest(what, done, total)}", err=True)

    def say(self, what: str) -> None:
        """Something worth knowing in between."""
        if self._bar is not None:
            self._bar.console.print(what)
        elif not self._quiet:
            typer.echo(what, err=True)

    def _rest(self, what: str, done: int, total: int | None) -> str:
        """`` of 1200, 95 s left``, judged by the pace so far."""
        if total is None:
            return ""
        since, before = self._paces[what]
        seconds = time.perf_counter() - since
        left = (
            "" if done == before else f", {(total - done) * seconds / (done - before):.0f} s left"
        )
        return f" of {total}{left}"
