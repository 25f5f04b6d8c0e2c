"""Clients disconnect while text is streamed or before it; nothing of their work remains."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from bench.load import p95
from tests.server.event_reader import (
    QUESTION,
    client_of,
    files_of,
    leave,
    memory_of,
    streams_open,
    worker_of,
)
from tests.server.running_server import slow_server
from tests.server.slow_server import SILENT

from reliability.rows import Rows

pytestmark = pytest.mark.real

_MANNERS = {"streaming": QUESTION, "in a silence": QUESTION[:-1] + SILENT}
_WARM_UP = 5  # the first readers fill caches


async def test_who_leaves_leaves_nothing_behind(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R13",
        "Disconnect clients before the end",
        requirement=(
            "work cancelled within 0.3 s; tasks, files and memory do not grow; each "
            "logged as a disconnect"
        ),
    )
    times = rows.count(15, 100)
    waits: list[float] = []
    tasks: list[int] = []
    files: list[int] = []
    memory: list[int] = []
    with slow_server(tmp_path / "server") as server:
        notes = tmp_path / "server" / "cancelled"
        async with client_of(server.url) as client:
            worker = await worker_of(client)
            for number in range(times * len(_MANNERS)):
                message = list(_MANNERS.values())[number % len(_MANNERS)]
                seconds, running = await leave(client, notes, message=message)
                waits.append(seconds)
                tasks.append(running)
                files.append(files_of(worker))
                memory.append(memory_of(worker))
            left_open = await streams_open(client)
        lines = map(json.loads, server.log.read_text().splitlines())
        logged = sum(line.get("outcome") == "left" for line in lines)
    grown = [many[-1] - max(many[:_WARM_UP]) for many in (tasks, files)]
    per_reader = (memory[-1] - max(memory[:_WARM_UP])) / len(waits)
    row.record(
        " and ".join(f"{times} readers left {how}" for how in _MANNERS),
        f"cancelled after {statistics.median(waits):.2f} s, {max(waits):.2f} s at most; "
        f"{max(0, grown[0])} tasks and {max(0, grown[1])} files more, "
        f"{per_reader / 1024:+.0f} kB a reader; {left_open:.0f} streams open, {logged} logged",
        # Beside other tests, a late one says nothing about the server.
        passed=(p95(waits) if row.full else statistics.median(waits)) < 0.3
        and grown[0] <= 0
        and grown[1] <= 2  # a connection may still be closing
        and per_reader < 64 * 1024
        and left_open == 0
        and logged == len(waits),
    )
