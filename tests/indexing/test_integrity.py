"""The check of the index names what is wrong, and a repair costs no embedding."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bythebook.book import Book
from bythebook.components import Components
from bythebook.indexing.integrity import IndexReport
from bythebook.interfaces.store import IndexedPassage
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryStore,
    MemoryThreads,
)
from bythebook.types import VectorState
from tests.samples import read


class Room:
    """A library in memory whose index can be tampered with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.embedder, self.catalog, self.shelf = (
            FakeEmbedder(),
            MemoryCatalog(),
            MemoryGenerationStore(),
        )
        self.library = Book(
            Components(
                embedder=self.embedder,
                store=self.shelf,
                catalog=self.catalog,
                threads=MemoryThreads(),
            )
        )

    async def entries(self) -> list[IndexedPassage]:
        [store] = self.shelf.generations.values()
        return await store.fetch(list(self.catalog.passages()))

    def tamper(self, entries: list[IndexedPassage]) -> None:
        [name] = self.shelf.generations
        self.shelf.generations[name] = MemoryStore(entries)

    async def check(self) -> IndexReport:
        return await self.library.check_index(read(self.folder))


@pytest.fixture
async def room(book_folder: Path) -> Room:
    made = Room(book_folder)
    await made.library.ingest(read(book_folder))
    return made


async def test_a_fresh_book_agrees(room: Room) -> None:
    report = await room.check()
    assert report.index_is_right
    assert report.is_current
    assert report.passages == len(room.catalog.passages())


async def test_missing_different_and_surplus_passages_are_named(room: Room) -> None:
    first, second, *rest = await room.entries()
    changed = replace(second, passage=replace(second.passage, text="Something else."))
    extra = replace(first, passage=replace(first.passage, id="f" * 64))
    more = replace(first, passage=replace(first.passage, id="e" * 64))
    room.tamper([changed, extra, more, *rest])
    report = await room.check()
    assert report.missing == (first.passage.id,)
    assert report.different == (second.passage.id,)
    assert report.surplus == 1
    assert not report.index_is_right


async def test_a_turned_vector_is_noticed(room: Room) -> None:
    first, *rest = await room.entries()
    assert first.vector is not None
    room.tamper([replace(first, vector=-np.asarray(first.vector)), *rest])
    assert (await room.check()).different == (first.passage.id,)


async def test_sources_that_moved_on_are_noticed(room: Room) -> None:
    (room.folder / "intro.md").write_text("# Intro\n\nAll new.\n")
    report = await room.check()
    assert report.index_is_right
    assert report.not_ingested
    assert report.gone


async def test_a_lost_generation_is_rebuilt_without_embedding(room: Room) -> None:
    before = {entry.passage.id for entry in await room.entries()}
    room.shelf.generations.clear()
    assert (await room.check()).unreadable
    calls = len(room.embedder.calls)
    await room.library.repair_index()
    assert len(room.embedder.calls) == calls
    report = await room.check()
    assert report.index_is_right
    assert report.is_current
    assert {entry.passage.id for entry in await room.entries()} == before


async def test_where_vectors_are_lost_the_words_still_find(room: Room) -> None:
    room.shelf.generations.clear()
    room.catalog._vectors.popitem()
    await room.library.repair_index()
    report = await room.check()
    assert report.vectors is VectorState.PENDING
    assert report.index_is_right
    assert len(report.without_vectors) == 1
    await room.library.ingest(read(room.folder))
    assert (await room.check()).is_current
