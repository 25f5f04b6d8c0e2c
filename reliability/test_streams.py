"""Many streams, readers who leave, slow readers, unfinished requests and a server that stops."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx
import pytest
from bench.load import connections, p95
from tests.server.asgi_client import Event
from tests.server.event_reader import (
    BODY,
    QUESTION,
    client_of,
    files_of,
    leave,
    memory_of,
    read,
    streams_open,
    worker_of,
)
from tests.server.running_server import slow_server
from tests.server.slow_server import BRIEF, LONG, LONG_SENTENCES, SENTENCES, SILENT

from bythebook.server.runner import raise_descriptor_limit
from reliability.rows import Row
from reliability.slow_readers import head, held, opened, post

_EVENTS = SENTENCES + 4  # what was found, the sentences, the citation, the end


@dataclass
class Told:
    streams: int = 0
    events: int = 0
    broken: int = 0
    endless: int = 0
    first_byte_s: dict[int, float] = field(default_factory=dict)  # p95, of the calmest round

    async def crowd(self, port: int, size: int) -> None:
        async with connections(port, size) as opened:
            told = await asyncio.gather(*(each.stream(QUESTION) for each in opened))
        first = p95([first for first, _, _ in told])
        self.first_byte_s[size] = min(first, self.first_byte_s.get(size, first))
        for _, _, seen in told:
            self.streams += 1
            self.events += len(seen)
            self.broken += [number for _, number in seen] != list(range(1, _EVENTS + 1))
            ends = [name for name, _ in seen if name in ("done", "error")]
            self.endless += ends != ["done"] or seen[-1][0] != "done"


async def _left_open(url: str) -> float:
    """Count streams that are still open after their last event was read."""
    async with client_of(url) as client:
        for _ in range(20):
            if not await streams_open(client):
                break
            await asyncio.sleep(0.1)
        return await streams_open(client)


@pytest.mark.real
@pytest.mark.row(
    "R12",
    "Open hundreds of streams at once",
    "0 events lost, doubled or out of order; one final event each; first byte p95 < 0.5 s at "
    "200 streams",
)
async def test_many_streams_lose_double_and_reorder_nothing(row: Row, tmp_path: Path) -> None:
    told = Told()
    with slow_server(tmp_path / "server") as server:
        port = int(server.url.rpartition(":")[2])
        for size in (200, 200, 500)[: row.count(1, 3)]:
            await told.crowd(port, size)
        left_open = await _left_open(server.url)
    firsts = ", ".join(f"{s:.2f} s at {size}" for size, s in told.first_byte_s.items())
    row.record(
        f"{told.streams} streams of {SENTENCES} sentences, {max(told.first_byte_s)} at once",
        f"{told.broken} with an event lost, doubled or out of order, {told.endless} without "
        f"exactly one end, {left_open:.0f} left open, of {told.events} events; first byte p95 "
        + firsts,
        passed=told.broken == told.endless == left_open == 0
        # Only where nobody else works meanwhile, as tests do beside each other.
        and (told.first_byte_s[200] < 0.5 or not row.full),
    )


_MANNERS = {"streaming": QUESTION, "in a silence": QUESTION[:-1] + SILENT}
_WARM_UP = 5  # the first readers fill caches


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R13",
    "Disconnect clients before the end",
    "work cancelled within 0.3 s; tasks, files and memory do not grow; each logged as a disconnect",
)
async def test_who_leaves_leaves_nothing_behind(row: Row, tmp_path: Path) -> None:
    times = row.count(15, 100)
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
        passed=p95(waits) < 0.3
        and grown[0] <= 0
        and grown[1] <= 2  # a connection may still be closing
        and per_reader < 64 * 1024
        and left_open == 0
        and logged == len(waits),
    )


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


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R14",
    "Read streams at one byte per second",
    "less than 1 MB each; closed within 60 s; other clients lose nothing and wait no longer",
)
async def test_slow_readers_cost_little_and_are_let_go(row: Row, tmp_path: Path) -> None:
    asked = _ASKED[: row.count(1, 2)]
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


_CLOSED_S, _HONEST_S = 10.0, 0.2
_QUESTION = BODY | {"message": QUESTION[:-1] + BRIEF}
_HEAD = head("/chat/run", 1000)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # and SETTINGS
_SILENT = {"nothing": b"", "preface": _PREFACE}
_FEW, _MORE = 256, 300  # descriptors of a server, and connections to it
_ACCEPTED_S = 60  # until the last of them is accepted and closed: some wait for others to end


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R15",
    "Send requests one byte at a time, or nothing",
    "all closed within 10 s; meanwhile normal questions are answered, p95 < 0.2 s; also after"
    " more silent connections than the server has descriptors",
)
async def test_who_never_finishes_a_request_is_shown_out(row: Row, tmp_path: Path) -> None:
    each = row.count(250, 500)
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
        passed=late == sum(starved) == 0 and more <= 2 and p95(spent) < _HONEST_S,
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


_STREAMS = 50


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R16",
    "Stop the server while it streams",
    "exit code 0 within 15 s; the last event of each stream says so; questions are answered",
)
async def test_a_stop_ends_streams_with_a_word_and_lets_questions_finish(
    row: Row, tmp_path: Path
) -> None:
    told: list[list[Event]] = []
    codes, slowest, refused = set(), 0.0, 0
    rounds = row.count(1, 5)
    for number in range(rounds):
        folder = tmp_path / str(number)
        with slow_server(folder) as server:
            async with client_of(server.url) as client:
                streams = [asyncio.create_task(read(client)) for _ in range(_STREAMS)]
                question = asyncio.create_task(client.post("/chat/run", json=BODY))
                deadline = time.monotonic() + 30
                while await streams_open(client) < _STREAMS:
                    assert time.monotonic() < deadline
                stopping = asyncio.create_task(asyncio.to_thread(server.stop))
                told += await asyncio.gather(*streams)
                ready = await client.get("/ready")
                assert (ready.status_code, ready.json()) == (503, {"status": "stopping"})
                assert (await client.post("/chat/stream", json=BODY)).status_code == 503
                refused += (await question).status_code != 200
                code, seconds = await stopping
        codes.add(code)
        slowest = max(slowest, seconds)
        assert "Traceback" not in server.log.read_text()
    wordless = sum(not _ends_with_a_word(events) for events in told)
    row.record(
        f"SIGTERM with {_STREAMS} streams and a question open, {rounds} times",
        f"{wordless} of {len(told)} streams without their word, {refused} questions lost, exit "
        f"{', '.join(map(str, codes))} after {slowest:.1f} s at most",
        passed=wordless == refused == 0 and codes == {0} and slowest < 15,
    )


def _ends_with_a_word(events: list[Event]) -> bool:
    gap_free = [event.number for event in events] == list(range(1, len(events) + 1))
    last = events[-1]
    return gap_free and last.name == "error" and last.body["error_code"] == "SHUTTING_DOWN"
