"""The fixture through which a test adds its row to the report."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from reliability.rows import SKIPPED, Row, Rows


@pytest.fixture
def rows(request: pytest.FixtureRequest) -> Iterator[Rows]:
    rows, started = Rows(), time.perf_counter()
    yield rows
    skipped = request.node.stash.get(SKIPPED, "")
    for row in rows.added:
        row.seconds = round(time.perf_counter() - started, 1)
        request.node.user_properties.append(("row", {**asdict(row), "skipped": skipped}))
        if not skipped:  # a skipped row keeps the figures of its last run
            _append(row)


def _append(row: Row) -> None:
    """Append a line to the file that the report reads; several processes may share it."""
    path = os.environ.get("BYTHEBOOK_RELIABILITY_ROWS")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
