"""Readers who take a byte a second cost little, are let go, and nobody else notices them."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.load import connections

from tests.proof.ledger import Ledger
from tests.proof.slowly import opened, post
from tests.serve.reading import QUESTION, client_of, files_of, memory_of, streams_open, worker_of
from tests.serve.running import slow_server
from tests.serve.slow_server import SENTENCES

pytestmark = pytest.mark.real

_SLOW, _OTHERS, _PATIENCE_S = range(50), 10, 60.0
_EVENTS = SENTENCES + 4


async def test_slow_readers_cost_little_and_are_let_go(proof: Ledger, tmp_path: Path) -> None:
    row = proof(
        "R14",
        "Readers who take one byte a second",
        bar="less than 1 MB each; let go within 60 s; others lose nothing and wait no longer",
    )
    rounds = proof.times(1, 3)
    heaviest = longest = 0.0
    incomplete, slower = 0, 0.0
    with slow_server(tmp_path / "server") as server:
        port = int(server.url.rpartition(":")[2])
        async with client_of(server.url) as client:
            worker = await worker_of(client)
            _, usual = await _others(port, beside=len(_SLOW))
            for _ in range(rounds):
                files, memory = files_of(worker), memory_of(worker)
                with ExitStack() as stack:
                    began = time.monotonic()
                    slow = [stack.enter_context(await opened(port, window=2048)) for _ in _SLOW]
                    reading = [asyncio.create_task(_sip(line)) for line in slow]
                    lost, took = await _others(port)
                    incomplete += lost
                    slower = max(slower, took / usual)
                    heaviest = max(heaviest, (memory_of(worker) - memory) / len(_SLOW))
                    while await streams_open(client) or files_of(worker) > files + 2:
                        assert time.monotonic() < began + 2 * _PATIENCE_S, "they are kept"
                        await asyncio.sleep(0.5)
                    longest = max(longest, time.monotonic() - began)
                    for task in reading:
                        task.cancel()
                    await asyncio.gather(*reading, return_exceptions=True)
    row.enter(
        f"{len(_SLOW)} readers at 1 B/s beside {_OTHERS} others, {rounds} times",
        f"{heaviest / 1e6:.2f} MB each; let go after {longest:.0f} s; {incomplete} of the others "
        f"lost an event, and they took {slower:.1f} times as long as beside readers who "
        "keep up",
        held=heaviest < 1e6
        and longest < _PATIENCE_S + 1
        and incomplete == 0
        # Beside other tests, a slow answer says nothing about the server.
        and (slower < 2 or not row.full),
    )


async def _sip(line: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    await post(line, "/chat/stream", {"message": QUESTION})
    taken = b"?"
    while taken:
        taken = await loop.sock_recv(line, 1)
        await asyncio.sleep(1)


async def _others(port: int, *, beside: int = 0) -> tuple[int, float]:
    """Of those who read as they should: who lost an event, and when the last one had them all."""
    async with connections(port, _OTHERS + beside) as opened_ones:
        told = await asyncio.gather(*(each.stream(QUESTION) for each in opened_ones))
    whole = list(range(1, _EVENTS + 1))
    lost = sum([number for _, number in seen] != whole for _, _, seen in told)
    return lost, max(last for _, last, _ in told)
