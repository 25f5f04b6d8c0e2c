"""Readers of a real server's streams, over connections of their own."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.server.asgi_client import Event, events_of

QUESTION = "At how many degrees does a kettle boil water?"
BODY = {"message": QUESTION, "top_k": 3}


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        yield client


async def read(
    client: httpx.AsyncClient,
    *,
    until: str | None = None,
    message: str = QUESTION,
    begun: asyncio.Event | None = None,
) -> list[Event]:
    """The events of a stream; with ``until``, the client leaves once it has seen that. ``begun`` is
    set once the server has said that it will answer."""
    text = ""
    body = BODY | {"message": message}
    async with client.stream("POST", "/chat/stream", json=body) as response:
        assert response.status_code == 200, f"{response.status_code}: {await response.aread()!r}"
        if begun is not None:
            begun.set()
        async for piece in response.aiter_text():
            text += piece
            if until is not None and until in text:
                break
    assert until is None or until in text
    return events_of(text)


async def leave(
    client: httpx.AsyncClient, notes: Path, *, message: str = QUESTION
) -> tuple[float, int]:
    """Leave a stream after its first words: the seconds until the work for it ended, by what the
    slow server notes, and the tasks that it had then."""
    before = len(_lines(notes))
    await read(client, until="event: delta", message=message)
    left = time.time()
    while len(lines := _lines(notes)) <= before:
        assert time.time() < left + 30, "the work goes on"
        await asyncio.sleep(0.01)
    when, tasks = lines[before].split()
    return float(when) - left, int(tasks)


def _lines(notes: Path) -> list[str]:
    return notes.read_text().splitlines() if notes.exists() else []


async def streams_open(client: httpx.AsyncClient) -> float:
    found = re.search(
        r"^bythebook_streams_open\S* (\S+)$", (await client.get("/metrics")).text, re.M
    )
    assert found is not None
    return float(found[1])


async def worker_of(client: httpx.AsyncClient) -> int:
    """The process that answers, where there is one."""
    found = re.search(r'worker="(\d+)"', (await client.get("/metrics")).text)
    assert found is not None
    return int(found[1])


def files_of(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def memory_of(process: int) -> int:
    """Resident bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
