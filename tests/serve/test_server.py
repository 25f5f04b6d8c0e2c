"""The real server: streams, several workers, a graceful stop, a swap under load, nginx in front."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.serve.driver import Event, events_of
from tests.serve.running import book_server, ingest, nginx_before, slow_server
from tests.serve.slow_server import PAUSE_S, SENTENCES

pytestmark = pytest.mark.real

_BODY = {"message": "At how many degrees does a kettle boil water?", "top_k": 3}


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=30, limits=limits) as client:
        yield client


async def _read(client: httpx.AsyncClient, *, until: str | None = None) -> list[Event]:
    """The events of a stream; with ``until``, the client leaves once it has seen that."""
    text = ""
    async with client.stream("POST", "/chat/stream", json=_BODY) as response:
        assert response.status_code == 200
        async for piece in response.aiter_text():
            text += piece
            if until is not None and until in text:
                break
    return events_of(text)


async def _streams_open(client: httpx.AsyncClient) -> float:
    found = re.search(
        r"^bythebook_streams_open\S* (\S+)$", (await client.get("/metrics")).text, re.M
    )
    assert found is not None
    return float(found[1])


async def test_many_streams_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    with slow_server(tmp_path / "server") as server:
        async with _client(server.url) as client:
            told = await asyncio.gather(*(_read(client) for _ in range(50)))
            assert await _streams_open(client) == 0
    for events in told:
        assert [event.number for event in events] == list(range(1, SENTENCES + 5))
        assert [event.name for event in events][-2:] == ["citation", "done"]
    assert len({events[0].id for events in told}) == 50


async def test_a_client_that_leaves_cancels_the_work_at_once(tmp_path: Path) -> None:
    with slow_server(tmp_path / "server") as server:
        await _check_leaving(server.url, tmp_path / "server" / "cancelled")


async def test_through_nginx_events_come_one_by_one_and_leaving_cancels(tmp_path: Path) -> None:
    with (
        slow_server(tmp_path / "server") as server,
        nginx_before(server, tmp_path / "nginx") as url,
    ):
        pieces: list[float] = []
        async with (
            _client(url) as client,
            client.stream("POST", "/chat/stream", json=_BODY) as response,
        ):
            assert response.headers["server"].startswith("nginx")
            async for _ in response.aiter_raw():
                pieces.append(time.monotonic())
        assert len(pieces) > SENTENCES / 2  # now and then two arrive together
        assert pieces[-1] - pieces[0] > PAUSE_S * SENTENCES / 2
        await _check_leaving(url, tmp_path / "server" / "cancelled")


async def _check_leaving(url: str, notes: Path) -> None:
    waits, files = [], []
    async with _client(url) as client:
        worker = re.search(r'worker="(\d+)"', (await client.get("/metrics")).text)
        assert worker is not None
        for number in range(7):
            await _read(client, until="event: delta")
            left = time.time()
            while not notes.exists() or len(notes.read_text().splitlines()) <= number:
                assert time.time() < left + 10, "the work goes on"
                await asyncio.sleep(0.01)
            waits.append(float(notes.read_text().split()[-1]) - left)
            files.append(len(list(Path(f"/proc/{worker[1]}/fd").iterdir())))
        assert await _streams_open(client) == 0
    assert statistics.median(waits) < 0.3
    assert files[-1] <= files[0] + 2  # a connection may still be closing


async def test_a_stop_ends_fifty_streams_with_a_word_and_lets_questions_finish(
    tmp_path: Path,
) -> None:
    with slow_server(tmp_path / "server") as server:
        async with _client(server.url) as client:
            streams = [asyncio.create_task(_read(client)) for _ in range(50)]
            question = asyncio.create_task(client.post("/chat/run", json=_BODY))
            while await _streams_open(client) < 50:
                pass
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            told = await asyncio.gather(*streams)
            ready = await client.get("/ready")
            assert (ready.status_code, ready.json()) == (503, {"status": "stopping"})
            assert (await client.post("/chat/stream", json=_BODY)).status_code == 503
            assert (await question).status_code == 200
            code, seconds = await stopping
    assert code == 0
    assert seconds < 15
    for events in told:
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert events[-1].name == "error"
        assert events[-1].body["error_code"] == "SHUTTING_DOWN"
    assert "Traceback" not in server.log.read_text()


async def test_ctrl_c_ends_streams_with_a_word_too(tmp_path: Path) -> None:
    with slow_server(tmp_path / "server", workers=2) as server:
        async with _client(server.url) as client:
            streams = [asyncio.create_task(_read(client)) for _ in range(8)]
            await _read(client, until="event: delta")
            code = await asyncio.to_thread(server.interrupt)
            told = await asyncio.gather(*streams)
    assert code == 0
    assert {events[-1].body["error_code"] for events in told} == {"SHUTTING_DOWN"}


async def test_two_workers_answer_side_by_side(tmp_path: Path) -> None:
    with slow_server(tmp_path / "server", workers=2) as server:
        async with _client(server.url) as client:
            told = await asyncio.gather(*(_read(client) for _ in range(20)))
            assert all(events[-1].name == "done" for events in told)
            workers: set[str] = set()
            deadline = time.monotonic() + 10
            while len(workers) < 2:
                assert time.monotonic() < deadline
                workers |= set(re.findall(r'worker="(\d+)"', (await client.get("/metrics")).text))
        assert server.stop()[0] == 0


async def test_a_book_is_ingested_again_while_it_is_asked(
    tmp_path: Path, book_folder: Path
) -> None:
    home = tmp_path / "home"
    ingest(book_folder, home)
    with book_server(home, tmp_path / "log", workers=2) as server:
        async with _client(server.url) as client:
            asking = asyncio.create_task(_ask_until_silver(client))
            page = book_folder / "zeppelin.md"
            for colour in ("red", "green", "silver"):
                page.write_text(f"# Zeppelins\n\nThe colour of a zeppelin is {colour}.\n")
                await asyncio.to_thread(ingest, book_folder, home)
            assert await asyncio.wait_for(asking, 60) > 3
            for _ in range(10):  # whichever worker answers
                assert "silver" in await _colour(client)
        assert server.stop()[0] == 0
    assert "Traceback" not in server.log.read_text()


async def _colour(client: httpx.AsyncClient) -> str:
    response = await client.post("/ask", json={"text": "What colour is a zeppelin?"})
    assert response.status_code == 200, response.text
    return str(response.json()["answer"])


async def _ask_until_silver(client: httpx.AsyncClient) -> int:
    count = 0
    while "silver" not in await _colour(client):
        count += 1
    return count
