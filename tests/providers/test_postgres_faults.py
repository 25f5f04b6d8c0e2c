"""PostgreSQL that stops, refuses, hangs or is killed: answers go on, and it is said what was kept.

BYTHEBOOK_KILLS=10 kills as often; a few times is the habit.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bythebook.errors import DatabaseFailed
from bythebook.library import Library
from bythebook.model import Answer, Asker, Question
from bythebook.providers.fake import FakeEmbedder, MemoryShelf
from bythebook.providers.sql import SqlCatalog, open_database
from bythebook.providers.sql_log import SqlQueryLog
from bythebook.providers.sql_threads import SqlThreads
from bythebook.talk.log import LogQueue
from tests.databases import Postgres, running_postgres
from tests.samples import read

pytestmark = pytest.mark.real

_TEXT = "At how many degrees does a kettle boil water?"
_DEADLINE_S = 1.0
_KILLS = min(10, int(os.environ.get("BYTHEBOOK_KILLS", "3")))


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """Its own: no other test would like what is done to it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
async def library(server: Postgres, book_folder: Path, tmp_path: Path) -> AsyncIterator[Library]:
    engine = open_database(server.new_database(), tmp_path)
    library = Library(
        embedder=FakeEmbedder(),
        shelf=MemoryShelf(),
        catalog=SqlCatalog(engine, tmp_path),
        threads=SqlThreads(engine, deadline_s=_DEADLINE_S),
        log=LogQueue(SqlQueryLog(engine)),
        deadline_s=_DEADLINE_S,
    )
    await library.ingest(read(book_folder))
    await _until_kept(library)
    yield library
    await library.close()


async def _ask(library: Library, thread: str) -> bool:
    """Whether it was kept; that it was answered is certain."""
    question = Question(_TEXT, thread=thread)
    reply = await library.reply(question, asker=Asker(session=thread))
    assert isinstance(reply.outcome, Answer)
    return reply.persisted


async def _until_kept(library: Library, seconds: float = 30) -> float:
    """How long it takes until the notebook is back."""
    began = time.monotonic()
    while not await _ask(library, str(uuid.uuid4())):
        assert time.monotonic() - began < seconds
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def test_while_it_is_stopped_answers_go_on_and_after_it_they_are_kept(
    library: Library, server: Postgres
) -> None:
    thread = str(uuid.uuid4())
    assert await _ask(library, thread)
    server.stop()
    try:
        assert not any([await _ask(library, thread) for _ in range(10)])
        assert (await library.health())["database"] != "ok"
    finally:
        server.start()
    print(f"kept again after {await _until_kept(library):.2f} s")
    assert (await library.health())["database"] == "ok"
    kept = await library.threads.read(thread, owner=None)
    assert kept is not None
    assert len(kept.messages) == 2


async def test_while_it_hangs_nothing_else_does(library: Library, server: Postgres) -> None:
    thread = str(uuid.uuid4())
    assert await _ask(library, thread)
    with server.hanging():
        began = time.monotonic()
        first = await asyncio.gather(*(_ask(library, thread) for _ in range(20)))
        taken = time.monotonic() - began
        again = time.monotonic()
        assert not any(first)
        assert not await _ask(library, thread)
        print(f"20 answers {taken:.2f} s, one more {time.monotonic() - again:.2f} s")
        # The catalog's deadline and the thread's, and some room for a busy machine.
        assert taken < 2 * _DEADLINE_S + 3
        assert "in time" in (await library.health())["database"]
    await _until_kept(library)
    kept = await library.threads.read(thread, owner=None)
    assert kept is not None
    assert len(kept.messages) == 2  # what was said to be lost does not come up later


async def test_a_kill_under_load_loses_nothing_that_was_said_to_be_kept(
    library: Library, server: Postgres
) -> None:
    threads = [str(uuid.uuid4()) for _ in range(4)]
    kept = dict.fromkeys(threads, 0)
    asked = dict.fromkeys(threads, 0)
    stop = asyncio.Event()

    async def reader(thread: str) -> None:
        while not stop.is_set():
            asked[thread] += 1
            kept[thread] += await _ask(library, thread)
            await asyncio.sleep(0.001)

    readers = [asyncio.create_task(reader(thread)) for thread in threads]
    slowest = 0.0
    for _ in range(_KILLS):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        slowest = max(slowest, await _until_kept(library))
    stop.set()
    await asyncio.gather(*readers)
    print(f"{_KILLS} kills, {kept} kept of {asked}, kept again after {slowest:.2f} s at most")
    for thread in threads:
        stored = await library.threads.read(thread, owner=None, whole=True)
        assert stored is not None
        # A commit whose acknowledgement was lost may be there as well.
        assert kept[thread] <= len(stored.messages) // 2 <= asked[thread]


async def test_a_book_cannot_be_opened_without_it(server: Postgres, tmp_path: Path) -> None:
    url = server.new_database()
    server.stop()
    try:
        with pytest.raises(DatabaseFailed) as told:
            open_database(url, tmp_path)
    finally:
        server.start()
    assert "127.0.0.1" not in str(told.value)
