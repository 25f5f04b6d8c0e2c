"""Blocking work does not hold up the event loop, and ends before whoever waits for it leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bythebook.book import Book
from bythebook.chunking.read_book import read_book
from bythebook.components import Components
from bythebook.offload import offload, offloaded
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from tests.samples import small_book

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


async def test_the_loop_goes_on_while_a_slow_catalog_is_at_work(tmp_path: Path) -> None:
    catalog = _SlowCatalog(asyncio.get_running_loop())
    library = Book(
        Components(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=catalog,
            threads=MemoryThreads(),
        )
    )
    book = read_book(small_book(tmp_path / "docs"))
    result = await library.ingest(book)
    assert result.chunks_created
    assert catalog.called == {"ingesting", *_CALLS}
    assert await library.serves(result.generation)
    assert (await library.check_index(book)).index_is_right
    await library.repair_index()
    assert await library.origin() == ""
    await library.close()


async def test_who_is_cancelled_leaves_when_the_work_has_ended() -> None:
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


async def test_a_lock_is_released_whatever_happens() -> None:
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
