"""Rows of the reliability report: what was tried how often, the result, and what it must be."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

FULL = os.environ.get("BYTHEBOOK_RELIABILITY") == "full"
SKIPPED = pytest.StashKey[str]()  # of a test: why it was skipped


@dataclass(slots=True)
class Row:
    """One failure or attack that a test tries, with the figures that the report shows."""

    id: str  # R1, R2 … (faults and load), S1, S2 … (attacks)
    title: str
    requirement: str
    procedure: str = ""
    result: str = ""
    passed: bool = False
    full: bool = FULL
    seconds: float = 0.0
    test: str = ""  # file and function

    def record(self, procedure: str, result: str, *, passed: bool) -> None:
        """Store the figures, then fail the test unless the requirement is met."""
        self.procedure, self.result, self.passed = procedure, result, passed
        assert passed, (
            f"{self.id} {self.title}: {procedure}: {result}; required: {self.requirement}"
        )

    @staticmethod
    def count(quick: int, full: int) -> int:
        """Return how often to repeat: ``full`` times with ``--full``, else ``quick`` times."""
        return full if FULL else quick
