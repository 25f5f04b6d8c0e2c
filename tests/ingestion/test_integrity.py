"""The index check reports differences, and a repair needs no embedding."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bythebook.book import Book
from bythebook.ingestion.integrity import IndexReport
from bythebook.interfaces.store import IndexedPassage
from bythebook.providers.flat_index import FlatStore
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.types import VectorState
from tests.support.samples import read


class Parts:
    """A open_book in memory whose index can be tampered with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.embedder, self.catalog, self.generations = (
            FakeEmbedder(),
            MemoryCatalog(),
            MemoryGenerationStore(),
        )
        self.open_book = Book(
            embedder=self.embedder,
            store=self.generations,
            catalog=self.catalog,
            threads=MemoryThreads(),
        )

    async def entries(self) -> list[IndexedPassage]:
        [store] = self.generations.generations.values()
        return await store.fetch(list(self.catalog.passages()))

    def tamper(self, entries: list[IndexedPassage]) -> None:
        [name] = self.generations.generations
        self.generations.generations[name] = FlatStore.of(entries, dimension=64)

    async def check(self) -> IndexReport:
        return await self.open_book.ingesting().check_index(read(self.folder))


@pytest.fixture
async def parts(book_folder: Path) -> Parts:
    made = Parts(book_folder)
    await made.open_book.ingest(read(book_folder))
    return made


async def test_a_fresh_book_agrees(parts: Parts) -> None:
    report = await parts.check()
    assert report.index_is_right
    assert report.is_current
    assert report.passages == len(parts.catalog.passages())


async def test_missing_different_and_surplus_passages_are_named(parts: Parts) -> None:
    first, second, *rest = await parts.entries()
    changed = replace(second, passage=replace(second.passage, text="Something else."))
    extra = replace(first, passage=replace(first.passage, id="f" * 64))
    more = replace(first, passage=replace(first.passage, id="e" * 64))
    parts.tamper([changed, extra, more, *rest])
    report = await parts.check()
    assert report.missing == (first.passage.id,)
    assert report.different == (second.passage.id,)
    assert report.surplus == 1
    assert not report.index_is_right


async def test_a_changed_vector_is_reported(parts: Parts) -> None:
    first, *rest = await parts.entries()
    assert first.vector is not None
    parts.tamper([replace(first, vector=-np.asarray(first.vector)), *rest])
    assert (await parts.check()).different == (first.passage.id,)


async def test_changed_sources_are_reported(parts: Parts) -> None:
    (parts.folder / "intro.md").write_text("# Intro\n\nAll new.\n")
    report = await parts.check()
    assert report.index_is_right
    assert report.not_ingested
    assert report.gone


async def test_a_lost_generation_is_rebuilt_without_embedding(parts: Parts) -> None:
    before = {entry.passage.id for entry in await parts.entries()}
    parts.generations.generations.clear()
    assert (await parts.check()).unreadable
    calls = len(parts.embedder.calls)
    await parts.open_book.ingesting().repair_index()
    assert len(parts.embedder.calls) == calls
    report = await parts.check()
    assert report.index_is_right
    assert report.is_current
    assert {entry.passage.id for entry in await parts.entries()} == before


async def test_a_book_with_lost_vectors_is_repaired_for_keyword_search(parts: Parts) -> None:
    parts.generations.generations.clear()
    embedder = parts.embedder.name
    _lost, *kept = sorted(parts.catalog.known_vectors(embedder))
    current = parts.catalog.current()
    assert current is not None
    passages = list(parts.catalog.passages().values())
    parts.catalog.commit(passages, current, keep_vectors=set(kept))
    await parts.open_book.ingesting().repair_index()
    report = await parts.check()
    assert report.vectors is VectorState.PENDING
    assert report.index_is_right
    assert len(report.without_vectors) == 1
    await parts.open_book.ingest(read(parts.folder))
    assert (await parts.check()).is_current
