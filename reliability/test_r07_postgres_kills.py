"""PostgreSQL is killed while readers ask: they get answers, and stored threads stay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.databases import running_postgres
from tests.support.samples import read

from reliability.client import Reader, is_ready, library_on, open_for_readers
from reliability.rows import Rows

pytestmark = pytest.mark.real

_READERS = 4
_RECOVERS_S = 5.0


async def test_kills_under_load(rows: Rows, book_folder: Path, tmp_path: Path) -> None:
    row = rows.add(
        "R7",
        "Kill PostgreSQL under load",
        requirement=(
            "0 acknowledged messages lost, 0 errors, threads stored again ≤ 5 s after it is back"
        ),
    )
    kills, slowest, lost, invented = rows.count(3, 10), 0.0, 0, 0
    with running_postgres() as server:
        library = library_on(server.new_database(), tmp_path, deadline_s=1.0)
        await library.ingest(read(book_folder))
        async with open_for_readers(library) as client:
            readers = [Reader(client) for _ in range(_READERS)]
            await _until(readers[0].talk)
            stop = asyncio.Event()
            load = [asyncio.create_task(_talk(reader, stop)) for reader in readers]
            for _ in range(kills):
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
                slowest = max(slowest, await _until(Reader(client).talk))
            stop.set()
            await asyncio.gather(*load)
            await _until(lambda: is_ready(client))
            for reader in readers:
                thread = await library.threads.read(reader.session, owner=None, whole=True)
                stored = len(thread.messages) // 2 if thread else 0
                lost += max(0, reader.kept - stored)
                # A commit whose acknowledgement was lost may be there as well.
                invented += max(0, stored - reader.asked)
    asked, failed = sum(r.asked for r in readers), sum(r.failed + r.wrong for r in readers)
    kept = sum(reader.kept for reader in readers)
    row.record(
        f"{kills} SIGKILLs of the postmaster under {_READERS} readers, {asked:,} questions, "
        f"{kept:,} exchanges acknowledged",
        f"{lost} lost, {invented} invented, {failed} errors or wrong answers; kept again after "
        f"{slowest:.1f} s at most",
        passed=not (lost or invented or failed) and slowest <= _RECOVERS_S,
    )


async def _talk(reader: Reader, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await reader.talk()
        await asyncio.sleep(0.001)


async def _until(does: Callable[[], Awaitable[bool]], seconds: float = 30) -> float:
    """Return how long it takes until the condition holds."""
    began = time.monotonic()
    while not await does():
        assert time.monotonic() - began < seconds
        await asyncio.sleep(0.05)
    return time.monotonic() - began
