"""Blocking work runs on worker threads, and ends before its cancelled caller returns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bythebook.book import Book
from bythebook.ingestion.read_book import read_book
from bythebook.offload import offload, offloaded
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from tests.support.samples import small_book

_LONGEST_WAIT = 60  # seconds: only a test that fails waits so long
_CALLS = ("passages", "known_vectors", "add_vectors", "vectors", "commit", "current", "served")


class _SlowCatalog(MemoryCatalog):
    """A catalog each of whose calls waits until the event loop has made another turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._loop_thread = threading.current_thread()
        self.called: set[str] = set()

    def _wait_for_the_loop(self, name: str) -> None:
        self.called.add(name)
        assert threading.current_thread() is not self._loop_thread, name
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        assert turned.wait(_LONGEST_WAIT), name

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        self._wait_for_the_loop("ingesting")
        yield
        self._wait_for_the_loop("ingesting")


def _waiting(name: str) -> Callable[..., Any]:
    plain = getattr(MemoryCatalog, name)

    def call(self: _SlowCatalog, *given: Any, **more: Any) -> Any:
        self._wait_for_the_loop(name)
        return plain(self, *given, **more)

    return call


for _name in _CALLS:
    setattr(_SlowCatalog, _name, _waiting(_name))


async def test_no_catalog_call_runs_on_the_thread_of_the_event_loop(tmp_path: Path) -> None:
    docs = small_book(tmp_path / "docs")
    catalog = _SlowCatalog(asyncio.get_running_loop())
    book = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=catalog,
        threads=MemoryThreads(),
        home=tmp_path / "home",
    )
    async with book:
        result = await book.ingest(docs)
        assert catalog.called == {"ingesting", *_CALLS}
        assert (await book.ingest(docs)).unchanged == result.chunks_created
        assert await book.ingesting().serves(result.generation)
        assert (await book.ask("Why does a kite fly?")).evidence.hits
        assert (await book.search("kite")).hits
        contents = await book.contents()
        assert await book.section(contents.pages[0].url)
        assert set((await book.health()).values()) == {"ok"}
        assert (await book.ingesting().check_index(read_book(docs))).index_is_right
        await book.ingesting().repair_index()
        assert str(docs) in await book.ingesting().origin()


async def test_a_cancelled_caller_returns_after_the_work_has_ended() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(_LONGEST_WAIT)
        ended.set()

    waiting = asyncio.create_task(offload(work))
    assert await asyncio.to_thread(begun.wait, _LONGEST_WAIT)
    waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_a_lock_is_released_after_an_error() -> None:
    held: list[str] = []

    @contextmanager
    def lock() -> Iterator[None]:
        held.append("taken")
        try:
            yield
        finally:
            held.append("released")

    with pytest.raises(RuntimeError):
        async with offloaded(lock()):
            raise RuntimeError
    assert held == ["taken", "released"]
    assert await offload(lambda: 7) == 7
    with pytest.raises(ValueError, match="wrong"):
        await offload(lambda: int("wrong"))
