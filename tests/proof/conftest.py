"""The ledger of a run: printed at its end, and written where ``BYTHEBOOK_PROOF_LEDGER`` says."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.proof.ledger import Ledger, Row

_ROWS = pytest.StashKey[list[Row]]()


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    ledger, began = Ledger(), time.perf_counter()
    yield ledger
    for row in ledger.rows:
        row.seconds = round(time.perf_counter() - began, 1)
        request.config.stash.setdefault(_ROWS, []).append(row)
        _write(row)


def _write(row: Row) -> None:
    """A line for each row, also where several processes share the work."""
    path = os.environ.get("BYTHEBOOK_PROOF_LEDGER")
    if path:
        with Path(path).open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash.get(_ROWS, [])
    if rows:
        terminalreporter.section("proof")
    for row in sorted(rows, key=lambda row: (row.id[0], int(row.id[1:]))):
        mark = "held " if row.held else "FAILS"
        terminalreporter.write_line(f"{mark} {row.id:<4} {row.title}: {row.done}: {row.found}")
