"""Clients that read one byte per second cost little, are disconnected, and affect nobody else."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
from bench.load import connections
from tests.server.event_reader import (
    QUESTION,
    client_of,
    files_of,
    memory_of,
    streams_open,
    worker_of,
)
from tests.server.running_server import slow_server
from tests.server.slow_server import LONG, LONG_SENTENCES, SENTENCES

from reliability.rows import Rows
from reliability.slow_readers import held, opened, post

pytestmark = pytest.mark.real

_SLOW, _OTHERS, _PATIENCE_S, _TIDYING_S = range(50), 10, 60.0, 2.0
_EVENTS = SENTENCES + 4
# What is told of the second is more than the system would take in for them.
_ASKED = (QUESTION, QUESTION[:-1] + LONG)


@dataclass
class Slow:
    """Clients that read one byte per second until they are disconnected."""

    asked: str
    port: int
    lines: list[socket.socket] = field(default_factory=list)
    taken_in: dict[int, float] = field(default_factory=dict)  # when the last byte for each was
    let_go: dict[int, float] = field(default_factory=dict)
    memory: int = 0  # of the worker, at most

    async def begin(self) -> list[asyncio.Task[None]]:
        self.lines = [await opened(self.port, window=2048) for _ in _SLOW]
        return [asyncio.create_task(self._sip(line)) for line in self.lines]

    async def until_let_go(self, worker: int) -> float:
        """Return how long, at most, the server kept a connection that accepted no more bytes."""
        clients = {line.getsockname()[1] for line in self.lines}
        unsent = dict.fromkeys(clients, -1)
        self.taken_in = dict.fromkeys(clients, time.monotonic())
        while len(self.let_go) < len(clients):
            connections_now, now = held(clients), time.monotonic()
            for client in clients - self.let_go.keys():
                connection = connections_now.get(client)
                if connection is None or not connection.is_open:
                    self.let_go[client] = now
                elif connection.unsent > unsent[client]:
                    unsent[client], self.taken_in[client] = connection.unsent, now
            self.memory = max(self.memory, memory_of(worker))
            assert now < max(self.taken_in.values()) + 2 * _PATIENCE_S, "they are kept"
            await asyncio.sleep(0.25)
        return max(self.let_go[client] - self.taken_in[client] for client in clients)

    async def _sip(self, line: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await post(line, "/chat/stream", {"message": self.asked})
        taken = b"?"
        while taken:
            taken = await loop.sock_recv(line, 1)
            await asyncio.sleep(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self.lines:
            line.close()


async def test_slow_readers_cost_little_and_are_let_go(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R14",
        "Read streams at one byte per second",
        requirement=(
            "less than 1 MB each; closed within 60 s; other clients lose nothing and wait no longer"
        ),
    )
    asked = _ASKED[: rows.count(1, 2)]
    heaviest = 0.0
    kept: list[float] = []
    incomplete, left, slower = 0, 0, 0.0
    with slow_server(tmp_path / "server") as server:
        port = int(server.url.rpartition(":")[2])
        async with client_of(server.url) as client:
            worker = await worker_of(client)
            _, usual = await _others(port, beside=len(_SLOW))
            for question in asked:
                files, memory = files_of(worker), memory_of(worker)
                with Slow(question, port) as slow:
                    reading = await slow.begin()
                    (lost, took), longest = await asyncio.gather(
                        _others(port), slow.until_let_go(worker)
                    )
                    incomplete += lost
                    slower = max(slower, took / usual)
                    kept.append(longest)
                    await asyncio.sleep(_TIDYING_S)
                    left += int(await streams_open(client))
                    left += max(0, files_of(worker) - files - 2)
                    heaviest = max(heaviest, (slow.memory - memory) / len(_SLOW))
                    for task in reading:
                        task.cancel()
                    await asyncio.gather(*reading, return_exceptions=True)
    row.record(
        f"{len(_SLOW)} readers at 1 B/s beside {_OTHERS} others, of an answer of {SENTENCES} "
        + (f"sentences and of one of {LONG_SENTENCES}" if len(asked) > 1 else "sentences"),
        f"{heaviest / 1e6:.2f} MB each; let go {' and '.join(f'{each:.0f} s' for each in kept)} "
        f"at most after the last byte for each went in; {left} streams or files left; "
        f"{incomplete} of the others lost an event, and they took {slower:.1f} times as long as "
        "beside readers who keep up",
        passed=heaviest < 1e6
        and max(kept) <= _PATIENCE_S
        and left == incomplete == 0
        # Beside other tests, a slow answer says nothing about the server.
        and (slower < 2 or not row.full),
    )


async def _others(port: int, *, beside: int = 0) -> tuple[int, float]:
    """Return which normal clients lost an event, and when the last one had all events."""
    async with connections(port, _OTHERS + beside) as opened_ones:
        told = await asyncio.gather(*(each.stream(QUESTION) for each in opened_ones))
    whole = list(range(1, _EVENTS + 1))
    lost = sum([number for _, number in seen] != whole for _, _, seen in told)
    return lost, max(last for _, last, _ in told)
