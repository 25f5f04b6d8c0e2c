"""Progress of long operations: a bar on a terminal, an occasional plain line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from bythebook.cli.output import echo, printable

_EVERY_SECONDS = 5.0


class Progress:
    """Progress display on standard error, so that standard output stays clean."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._said = time.perf_counter()
        self._paces: dict[str, tuple[float, int]] = {}  # start time, and progress at that time

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
            echo(f"{what}: {done}{self._rest(what, done, total)}", err=True)

    def say(self, what: str) -> None:
        """Print a message between progress updates."""
        if self._bar is not None:
            self._bar.console.print(printable(what), markup=False)
        elif not self._quiet:
            echo(what, err=True)

    def _rest(self, what: str, done: int, total: int | None) -> str:
        """Return `` of 1200, 95 s left``, estimated from the speed so far."""
        if total is None:
            return ""
        since, before = self._paces[what]
        seconds = time.perf_counter() - since
        left = (
            "" if done == before else f", {(total - done) * seconds / (done - before):.0f} s left"
        )
        return f" of {total}{left}"
