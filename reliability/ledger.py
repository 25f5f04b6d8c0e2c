"""Rows of the proof: what was done how often, what was lost, and the bar it is held to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pytest

FULL = os.environ.get("BYTHEBOOK_PROOF") == "full"
SKIPPED = pytest.StashKey[str]()  # of a test: why it was skipped


@dataclass(slots=True)
class Row:
    """One way to fail, tried. ``done`` and ``found`` are what the page shows."""

    id: str  # R1 … R25, S1 … S20
    title: str
    bar: str
    done: str = ""
    found: str = ""
    held: bool = False
    full: bool = FULL
    seconds: float = 0.0

    def enter(self, done: str, found: str, *, held: bool) -> None:
        """Write the figure down, then hold it to its bar."""
        self.done, self.found, self.held = done, found, held
        assert held, f"{self.id} {self.title}: {done}: {found}; the bar is: {self.bar}"


@dataclass(slots=True)
class Ledger:
    rows: list[Row] = field(default_factory=list)

    def __call__(self, row_id: str, title: str, *, bar: str) -> Row:
        row = Row(row_id, title, bar)
        self.rows.append(row)
        return row

    @staticmethod
    def times(quick: int, full: int) -> int:
        """How often to do it: a few times in every run, all of them when it is to be proven."""
        return full if FULL else quick
