"""While the database or the vector store fails, readers are answered or told when to come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from qdrant_client import QdrantClient, models
from tests.support.databases import Postgres, running_postgres
from tests.support.samples import read
from tests.support.servers import Node, running_server

from bythebook.book import Book
from bythebook.errors import DatabaseFailed
from bythebook.providers.flat_index import keyword_store
from bythebook.providers.qdrant.nodes import Server
from bythebook.providers.qdrant.server import ServerGenerationStore
from bythebook.providers.sql.engine import open_database
from bythebook.providers.testing import FakeEmbedder, MemoryCatalog, MemoryThreads
from reliability.proxy import Faults, FaultyLine, faulty_line
from reliability.readers import TEXT, LocalReader, is_ready, library_on, open_for_readers
from reliability.rows import Row

_DEADLINE_S = 1.0
_AT_ONCE = 20

Fault = Callable[[Any, FaultyLine], AbstractContextManager[None]]


@contextmanager
def _stopped(server: Postgres, line: FaultyLine) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def _hanging(server: Postgres, line: FaultyLine) -> Iterator[None]:
    with server.hanging():
        yield


def _line_that(**faults: Any) -> Fault:
    @contextmanager
    def faulty(server: Any, line: FaultyLine) -> Iterator[None]:
        line.faults = Faults(**faults)
        try:
            yield
        finally:
            line.faults = Faults()

    return faulty


_DATABASE_FAULTS: dict[str, Fault] = {
    "stopped": _stopped,
    "refusing": _line_that(reset_after=0),
    "hanging": _hanging,
    "silent": _line_that(stall_after=0),
    "slow by 5 s": _line_that(latency_s=5.0),
    "cut off": _line_that(cut_after=20),
}


class DatabaseCount:
    def __init__(self) -> None:
        self.asked = self.failed = self.falsely_kept = self.falsely_ready = 0
        self.differing = self.overfull = 0
        self.slowest = self.back = 0.0

    @property
    def clean(self) -> bool:
        said = self.falsely_kept or self.falsely_ready or self.differing
        return not (self.failed or said or self.overfull)


@pytest.mark.real
@pytest.mark.row(
    "R8",
    "Stop, refuse, hang or slow down the database",
    "0 errors on /query, `persisted` never falsely true, readiness fails, at most 1,000 log "
    "rows queued",
)
async def test_answers_without_a_database(row: Row, book_folder: Path, tmp_path: Path) -> None:
    count, waiting = DatabaseCount(), row.count(100, 1000)
    with running_postgres() as server, faulty_line(("127.0.0.1", server.port)) as line:
        url = server.new_database().replace(f":{server.port}/", f":{line.port}/")
        library = library_on(url, tmp_path, deadline_s=_DEADLINE_S, waiting=waiting)
        await library.ingest(read(book_folder))
        async with open_for_readers(library) as client:
            await _until_ready(client)
            for fault in _DATABASE_FAULTS.values():
                await _go_through(fault(server, line), library, client, count)
            with _stopped(server, line):
                await _fill_the_queue(library, client, count, waiting)
                _check_that_it_cannot_be_opened(url, tmp_path)
            await _until_ready(client)
    row.record(
        f"{count.asked:,} questions while it was {', '.join(_DATABASE_FAULTS)}; more than "
        f"{waiting:,} rows for the log meanwhile",
        f"{count.failed} errors or wrong answers, {count.falsely_kept} falsely kept, "
        f"{count.falsely_ready} times falsely ready, {count.differing} histories other than said, "
        f"{count.overfull} rows too many waiting; {_AT_ONCE} at once in {count.slowest:.1f} s, "
        f"ready again after {count.back:.1f} s at most",
        passed=count.clean,
    )


async def _go_through(
    fault: AbstractContextManager[None],
    library: Book,
    client: httpx.AsyncClient,
    count: DatabaseCount,
) -> None:
    before, reader = LocalReader(client), LocalReader(client)
    assert await before.talk()
    await asyncio.to_thread(fault.__enter__)
    try:
        began = time.monotonic()
        kept = await asyncio.gather(*(before.talk() for _ in range(_AT_ONCE // 2)))
        await asyncio.gather(*(reader.query() for _ in range(_AT_ONCE // 2)))
        count.slowest = max(count.slowest, time.monotonic() - began)
        count.falsely_kept += sum(kept)
        count.falsely_ready += await is_ready(client)
    finally:
        await asyncio.to_thread(fault.__exit__, None, None, None)
    count.back = max(count.back, await _until_ready(client))
    thread = await library.threads.read(before.session, owner=None)
    # An exchange whose reply said that it was not stored is not stored later, either.
    count.differing += thread is None or len(thread.messages) != 2
    count.asked += before.asked + reader.asked
    count.failed += before.failed + before.wrong + reader.failed + reader.wrong


async def _fill_the_queue(
    library: Book, client: httpx.AsyncClient, count: DatabaseCount, capacity: int
) -> None:
    assert library.log is not None
    await library.log.flush()
    already = library.log.waiting
    reader = LocalReader(client)
    more = capacity + capacity // 10
    for start in range(0, more, _AT_ONCE):
        await asyncio.gather(*(reader.query() for _ in range(min(_AT_ONCE, more - start))))
    count.overfull += max(0, library.log.waiting - capacity)
    assert library.log.waiting + library.log.dropped >= already + more
    count.asked += reader.asked
    count.failed += reader.failed + reader.wrong


def _check_that_it_cannot_be_opened(url: str, home: Path) -> None:
    with pytest.raises(DatabaseFailed) as told:
        open_database(url, home)
    assert "127.0.0.1" not in str(told.value)


async def _until_ready(client: httpx.AsyncClient, seconds: float = 30) -> float:
    began = time.monotonic()
    while not (await is_ready(client) and await LocalReader(client).talk()):
        assert time.monotonic() - began < seconds, "it does not become ready again"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


_STORE_S = 1.0  # that the store has for each thing it is asked
_BAR_S = 3.0
_RETRY_S = 0.5


@contextmanager
def _down(node: Node, line: FaultyLine) -> Iterator[None]:
    node.kill()
    try:
        yield
    finally:
        node.restart()


_FAULTS: dict[str, Fault] = {
    "down": _down,
    "refusing": _line_that(reset_after=0),
    "silent": _line_that(stall_after=0),
    "silent in the middle": _line_that(stall_after=50),
    "cut off": _line_that(cut_after=50),
    "reset": _line_that(reset_after=50),
    "slow by 3 s": _line_that(latency_s=3.0),
    "at 50 bytes a second": _line_that(bytes_per_s=50),
}


class Count:
    def __init__(self) -> None:
        self.asked = self.wrong = self.falsely_ready = 0
        self.slowest = self.back = 0.0


class Scene:
    """One book in one index behind the fault proxy: one instance with the keyword fallback, one
    without.
    """

    def __init__(self, line: FaultyLine, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{line.port}"
        self.folder = folder
        self.catalog = MemoryCatalog()

    def library(self, **more: Any) -> Book:
        shelf = ServerGenerationStore(Server((self.url,), timeout_s=_STORE_S), "book", dimension=64)
        return Book(
            embedder=FakeEmbedder(),
            store=shelf,
            catalog=self.catalog,
            threads=MemoryThreads(),
            retry_s=_RETRY_S,
            **more,
        )


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R9",
    "Stop, hang, slow down or empty the vector store",
    "keyword answers marked as degraded, or a typed 503 with Retry-After, within 3 s; an "
    "empty store is an error; readiness fails throughout",
)
async def test_answers_without_an_index(row: Row, book_folder: Path, tmp_path: Path) -> None:
    count, times = Count(), row.count(1, 5)
    with (
        running_server(tmp_path / "qdrant") as node,
        faulty_line(("127.0.0.1", urlsplit(node.url).port or 0)) as line,
    ):
        scene = Scene(line, book_folder)
        by_words, alone = scene.library(make_keyword_store=keyword_store), scene.library()
        await by_words.ingest(read(book_folder))
        async with open_for_readers(by_words) as words, open_for_readers(alone) as nothing:
            for client in (words, nothing):
                await _until_back(client)
            for fault in list(_FAULTS.values()) * times:
                await asyncio.to_thread((active := fault(node, line)).__enter__)
                try:
                    await _ask(words, count, _is_by_words)
                    await _ask(nothing, count, _is_unavailable)
                finally:
                    await asyncio.to_thread(active.__exit__, None, None, None)
                for client in (words, nothing):
                    count.back = max(count.back, await _until_back(client))
            for lose in (_empty, _halve, _remove):
                await asyncio.to_thread(lose, node.url, scene.catalog.served())
                for client in (words, nothing):
                    count.falsely_ready += await is_ready(client)
                    if lose is not _halve:
                        await _ask(client, count, _is_damaged)
                await by_words.ingesting().repair_index()
                for client in (words, nothing):
                    await _until_back(client)
    row.record(
        f"{count.asked} questions while it was {', '.join(_FAULTS)}, empty, half empty and gone, "
        "with words to go on by and without",
        f"{count.wrong} other answers than that, {count.falsely_ready} times falsely ready; the "
        f"slowest in {count.slowest:.1f} s, searched by meaning again after {count.back:.1f} s",
        passed=not (count.wrong or count.falsely_ready) and count.slowest <= _BAR_S,
    )


async def _ask(
    client: httpx.AsyncClient, count: Count, expected: Callable[[httpx.Response], bool]
) -> None:
    for _ in range(2):  # the second one meets what the first one left
        began = time.monotonic()
        response = await client.post("/ask", json={"text": TEXT})
        count.slowest = max(count.slowest, time.monotonic() - began)
        count.asked += 1
        if not expected(response):
            print(response.status_code, dict(response.headers), response.text)
            count.wrong += 1
    count.falsely_ready += await is_ready(client)


def _is_by_words(response: httpx.Response) -> bool:
    document = response.json()
    return (
        response.status_code == 200
        and document["vectors"] == "away"
        and "100 degrees" in document["answer"]
    )


def _is_unavailable(response: httpx.Response) -> bool:
    return response.status_code == 503 and int(response.headers["Retry-After"]) >= 1


def _is_damaged(response: httpx.Response) -> bool:
    """Return whether the error is permanent: it has no Retry-After."""
    return response.status_code == 503 and "Retry-After" not in response.headers


async def _until_back(client: httpx.AsyncClient, seconds: float = 30) -> float:
    began = time.monotonic()
    while True:
        response = await client.post("/ask", json={"text": TEXT})
        answered = response.status_code == 200 and response.json()["vectors"] == "ready"
        if answered and await is_ready(client):
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, response.text
        await asyncio.sleep(0.1)


def _points(url: str, generation: str) -> tuple[QdrantClient, str, list[Any]]:
    client, name = QdrantClient(url, check_compatibility=False), f"book-{generation}"
    records, _ = client.scroll(name, limit=1000)
    return client, name, [record.id for record in records]


def _empty(url: str, generation: str) -> None:
    client, name, ids = _points(url, generation)
    client.delete(name, models.PointIdsList(points=ids), wait=True)
    client.close()


def _halve(url: str, generation: str) -> None:
    client, name, ids = _points(url, generation)
    client.delete(name, models.PointIdsList(points=ids[::2]), wait=True)
    client.close()


def _remove(url: str, generation: str) -> None:
    client, name, _ = _points(url, generation)
    client.delete_collection(name)
    client.close()
