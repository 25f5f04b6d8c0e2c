"""Clients that never finish their request are disconnected and affect nobody else."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from bench.load import p95
from tests.server.event_reader import BODY, QUESTION, client_of, files_of, worker_of
from tests.server.running_server import slow_server
from tests.server.slow_server import BRIEF

from bythebook.server.runner import raise_descriptor_limit
from reliability.rows import Rows
from reliability.slow_readers import head, opened

pytestmark = pytest.mark.real

_CLOSED_S, _HONEST_S = 10.0, 0.2
_QUESTION = BODY | {"message": QUESTION[:-1] + BRIEF}
_HEAD = head("/chat/run", 1000)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # and SETTINGS
_SILENT = {"nothing": b"", "preface": _PREFACE}
_FEW, _MORE = 256, 300  # descriptors of a server, and connections to it
_ACCEPTED_S = 60  # until the last of them is accepted and closed: some wait for others to end


async def test_who_never_finishes_a_request_is_shown_out(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R15",
        "Send requests one byte at a time, or nothing",
        requirement=(
            "all closed within 10 s; meanwhile normal questions are answered, p95 < 0.2 s; also "
            "after more silent connections than the server has descriptors"
        ),
    )
    each = rows.count(250, 500)
    raise_descriptor_limit()  # of this process, which has as many connections
    with slow_server(tmp_path / "server") as server:
        port = int(server.url.rpartition(":")[2])
        async with client_of(server.url) as client:
            worker = await worker_of(client)
            await client.post("/chat/run", json=_QUESTION)  # the first one warms up
            files = files_of(worker)
            done = asyncio.Event()
            asking = asyncio.create_task(_honest(client, done))
            trickles = [_trickle(port, _HEAD[:-2] + b"X-", b"a") for _ in range(each)]
            trickles += [_trickle(port, _HEAD, b" ") for _ in range(each)]
            trickles += [_trickle(port, first) for first in (b"", _PREFACE) for _ in range(each)]
            closed = await asyncio.gather(*trickles)
            done.set()
            spent = await asking
            await asyncio.sleep(0.5)
            more = files_of(worker) - files
    starved = [await _starve(tmp_path / name, first) for name, first in _SILENT.items()]
    late = sum(seconds > _CLOSED_S for seconds in closed)
    row.record(
        f"{each} half-open heads, {each} trickled bodies, {each} silent connections and {each} "
        f"HTTP/2 prefaces at once, beside one who asks; {_MORE} silent ones, and as many prefaces, "
        f"to a server with {_FEW} descriptors",
        f"{late} open after 10 s, the last closed after {max(closed):.1f} s; {max(0, more)} files "
        f"left open; {len(spent)} honest questions answered, p95 {p95(spent):.2f} s; "
        f"{sum(starved)} of {2 * _MORE} kept open by the server with few descriptors",
        # Beside other tests, a slow answer says nothing about the server.
        passed=late == sum(starved) == 0 and more <= 2 and (p95(spent) < _HONEST_S or not row.full),
    )


async def _starve(folder: Path, first: bytes) -> int:
    """Return how many connections a server with few descriptors keeps open; it still answers."""
    with slow_server(folder, descriptors=_FEW) as server:
        port = int(server.url.rpartition(":")[2])
        lines = [await opened(port) for _ in range(_MORE)]
        with suppress(OSError):
            for line in lines:
                await asyncio.get_running_loop().sock_sendall(line, first)
        closed = [asyncio.create_task(_closed_at(line)) for line in lines]
        async with client_of(server.url) as client:
            assert (await client.post("/chat/run", json=_QUESTION)).json()["should_answer"]
        _, still = await asyncio.wait(closed, timeout=_ACCEPTED_S)
        for task in still:
            task.cancel()
        for line in lines:
            line.close()
    return len(still)


async def _trickle(port: int, first: bytes, then: bytes = b"") -> float:
    """Send this, then one byte per second; return when the server closes the connection."""
    loop = asyncio.get_running_loop()
    with await opened(port) as line:
        began = time.monotonic()
        closed = asyncio.create_task(_closed_at(line))
        with suppress(OSError):  # it hung up on us
            await loop.sock_sendall(line, first)
            while not closed.done() and time.monotonic() < began + 3 * _CLOSED_S:
                await asyncio.wait({closed}, timeout=1)
                await loop.sock_sendall(line, then)
        done, _ = await asyncio.wait({closed}, timeout=1)
        closed.cancel()
        return (closed.result() if done else time.monotonic()) - began


async def _closed_at(line: socket.socket) -> float:
    with suppress(OSError):
        while await asyncio.get_running_loop().sock_recv(line, 4096):
            pass
    return time.monotonic()


async def _honest(client: httpx.AsyncClient, until: asyncio.Event) -> list[float]:
    """Return how long each question of a normal client took meanwhile."""
    spent = []
    while not until.is_set():
        began = time.monotonic()
        response = await client.post("/chat/run", json=_QUESTION)
        assert response.json()["should_answer"]
        spent.append(time.monotonic() - began)
        await asyncio.sleep(0.1)
    return spent
