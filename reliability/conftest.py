"""The row that a test adds to the report, by its mark: id, title and requirement."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from reliability.rows import SKIPPED, Row


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the rows that ``--rows`` names."""
    wanted = config.getoption("--rows")
    if wanted:
        items[:] = [item for item in items if _id_of(item) in wanted.split(",")]


def _id_of(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("row")
    return mark.args[0] if mark else None


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Iterator[Row]:
    mark = request.node.get_closest_marker("row")
    row, started = Row(*mark.args, test=request.node.nodeid), time.perf_counter()
    yield row
    row.seconds = round(time.perf_counter() - started, 1)
    skipped = request.node.stash.get(SKIPPED, "")
    request.node.user_properties.append(("row", {**asdict(row), "skipped": skipped}))
    path = os.environ.get("BYTHEBOOK_RELIABILITY_ROWS")
    if path and not skipped:  # a skipped row keeps the figures of its last run
        with Path(path).open("a", encoding="utf-8") as file:  # that several processes share
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
