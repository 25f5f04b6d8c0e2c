"""The real server: several workers, Ctrl+C, a swap under load, nginx in front."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from tests.server.event_reader import BODY, client_of, leave, read
from tests.server.running_server import book_server, ingest, nginx_before, slow_server

pytestmark = pytest.mark.loopback


@pytest.mark.real
async def test_through_nginx_events_come_one_by_one_and_leaving_cancels(tmp_path: Path) -> None:
    with (
        slow_server(tmp_path / "server") as server,
        nginx_before(server, tmp_path / "nginx") as url,
    ):
        pieces = 0
        async with (
            client_of(url) as client,
            client.stream("POST", "/chat/stream", json=BODY) as response,
        ):
            assert response.headers["server"].startswith("nginx")
            async for _ in response.aiter_raw():
                pieces += 1
        assert pieces > 1
        # Who has the first words before the last ones are written can leave, and ends the work.
        async with client_of(url) as client:
            for _ in range(3):
                await leave(client, tmp_path / "server" / "cancelled")


async def test_sigint_ends_streams_with_an_error_event(tmp_path: Path) -> None:
    with slow_server(tmp_path / "server", workers=2) as server:
        async with client_of(server.url) as client:
            all_begun = [asyncio.Event() for _ in range(8)]
            streams = [asyncio.create_task(read(client, begun=begun)) for begun in all_begun]
            await asyncio.gather(*(begun.wait() for begun in all_begun))
            code = await asyncio.to_thread(server.interrupt)
            told = await asyncio.gather(*streams)
    assert code == 0
    assert {events[-1].body["error_code"] for events in told} == {"SHUTTING_DOWN"}


async def test_two_workers_answer_side_by_side(tmp_path: Path) -> None:
    with slow_server(tmp_path / "server", workers=2) as server:
        async with client_of(server.url) as client:
            told = await asyncio.gather(*(read(client) for _ in range(20)))
            assert all(events[-1].name == "done" for events in told)
            workers: set[str] = set()
            while len(workers) < 2:  # each worker answers sooner or later
                workers |= set(re.findall(r'worker="(\d+)"', (await client.get("/metrics")).text))
        assert server.stop()[0] == 0


@pytest.mark.slow
async def test_a_book_is_ingested_again_while_it_is_asked(
    tmp_path: Path, book_folder: Path
) -> None:
    home = tmp_path / "home"
    ingest(book_folder, home)
    with book_server(home, tmp_path / "log", workers=2) as server:
        async with client_of(server.url) as client:
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
