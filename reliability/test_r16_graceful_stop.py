"""A stopped server ends every stream with an event and lets questions finish."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.server.asgi_client import Event
from tests.server.event_reader import BODY, client_of, read, streams_open
from tests.server.running_server import slow_server

from reliability.rows import Rows

pytestmark = pytest.mark.real

_STREAMS = 50


async def test_a_stop_ends_streams_with_a_word_and_lets_questions_finish(
    rows: Rows, tmp_path: Path
) -> None:
    row = rows.add(
        "R16",
        "Stop the server while it streams",
        requirement=(
            "exit code 0 within 15 s; the last event of each stream says so; questions are answered"
        ),
    )
    told: list[list[Event]] = []
    codes, slowest, refused = set(), 0.0, 0
    rounds = rows.count(1, 5)
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
