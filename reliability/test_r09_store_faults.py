"""While the vector store is down, silent, slow or empty, keyword search answers or a typed error is
returned.
"""

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
from tests.support.samples import read
from tests.support.servers import Node, running_server

from bythebook.book import Book
from bythebook.providers.flat_index import keyword_store
from bythebook.providers.qdrant.nodes import Server
from bythebook.providers.qdrant.server import ServerGenerationStore
from bythebook.providers.testing import FakeEmbedder, MemoryCatalog, MemoryThreads
from reliability.client import TEXT, is_ready, open_for_readers
from reliability.proxy import Faults, FaultyLine, faulty_line
from reliability.rows import Rows

pytestmark = pytest.mark.real

_STORE_S = 1.0  # that the store has for each thing it is asked
_BAR_S = 3.0
_RETRY_S = 0.5

Fault = Callable[[Node, FaultyLine], AbstractContextManager[None]]


@contextmanager
def _down(node: Node, line: FaultyLine) -> Iterator[None]:
    node.kill()
    try:
        yield
    finally:
        node.restart()


def _line_that(**faults: Any) -> Fault:
    @contextmanager
    def faulty(node: Node, line: FaultyLine) -> Iterator[None]:
        line.faults = Faults(**faults)
        try:
            yield
        finally:
            line.faults = Faults()

    return faulty


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


async def test_answers_without_an_index(rows: Rows, book_folder: Path, tmp_path: Path) -> None:
    row = rows.add(
        "R9",
        "Stop, hang, slow down or empty the vector store",
        requirement=(
            "keyword answers marked as degraded, or a typed 503 with Retry-After, within "
            "3 s; an empty store is an error; readiness fails throughout"
        ),
    )
    count, times = Count(), rows.count(1, 5)
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
