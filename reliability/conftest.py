"""The ledger that a row enters its figure into."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from reliability.ledger import SKIPPED, Ledger, Row


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    ledger, began = Ledger(), time.perf_counter()
    yield ledger
    skipped = request.node.stash.get(SKIPPED, "")
    for row in ledger.rows:
        row.seconds = round(time.perf_counter() - began, 1)
        request.node.user_properties.append(("proof", {**asdict(row), "skipped": skipped}))
        if not skipped:  # a row that was not tried keeps the figures of its last run
            _write(row)


def _write(row: Row) -> None:
    """A line for each row, also where several processes share the work."""
    path = os.environ.get("BYTHEBOOK_PROOF_LEDGER")
    if path:
        with Path(path).open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
