"""Providers are chosen by the settings; a missing one is reported with a hint."""

import asyncio
import sys
from pathlib import Path

import pytest

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.errors import ConfigurationError, EmbedderMismatch, IndexDamaged, UnknownProvider
from bythebook.ingestion.read_book import read_book
from bythebook.providers.flat_index import FlatStore
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.types import Answer, Question, Reply
from tests.support.samples import SAMPLE_BOOK, read


def test_an_unknown_store_is_named_in_the_error(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "shoebox"}, environ={})
    with pytest.raises(ConfigurationError, match=r"shoebox.*files or qdrant"):
        Book(settings, new=True)


def test_a_server_needs_an_address(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "qdrant"}, environ={})
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        Book(settings, new=True)


def test_a_missing_package_is_reported_with_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("qdrant.server", "qdrant.nodes"):
        monkeypatch.delitem(sys.modules, f"bythebook.providers.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    settings = load_settings({"home": tmp_path}, environ={"QDRANT_URL": "http://127.0.0.1:6333"})
    with pytest.raises(UnknownProvider, match=r"qdrant_client.*bythebook\[qdrant\]"):
        Book(settings, new=True)


async def test_a_closed_book_has_closed_its_stores_and_opens_again() -> None:
    closed: list[str] = []

    class Shelf(MemoryGenerationStore):
        async def close(self) -> None:
            closed.append("generations")

    class Threads(MemoryThreads):
        async def close(self) -> None:
            closed.append("database")

    book = Book(
        embedder=FakeEmbedder(),
        store=Shelf(),
        catalog=MemoryCatalog(),
        threads=Threads(),
    )
    await book.ingest(read_book(SAMPLE_BOOK / "docs"))
    assert (await book.search(Question("robots"))).hits
    await book.close()
    assert closed == ["generations", "database"]
    assert (await book.search(Question("robots"))).hits


def _open(
    embedder: FakeEmbedder, catalog: MemoryCatalog, generations: MemoryGenerationStore, **more
) -> Book:  # type: ignore[no-untyped-def]
    threads = MemoryThreads()
    return Book(embedder=embedder, store=generations, catalog=catalog, threads=threads, **more)


async def test_an_open_book_switches_to_the_embedder_of_a_new_generation(book_folder: Path) -> None:
    catalog, generations, question = (
        MemoryCatalog(),
        MemoryGenerationStore(),
        Question("When does a kettle boil?"),
    )
    one, other = FakeEmbedder(), FakeEmbedder(name="fake:other")
    await _open(one, catalog, generations).ingest(read(book_folder))
    fixed = _open(one, catalog, generations)
    following = _open(one, catalog, generations, switch_embedder=lambda name: (other, generations))
    assert (await following.search(question)).hits
    await _open(other, catalog, generations).ingest(read(book_folder))
    assert (await following.search(question)).hits
    assert other.calls[-1] == [question.text]
    with pytest.raises(EmbedderMismatch, match=r"fake:other.*fake:bag"):
        await fixed.search(question)


class ClosingStore(MemoryGenerationStore):
    """Knows which generations are open, and how often each was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[str] = []

    async def open(self, generation: str) -> FlatStore:
        generations, store = self, await super().open(generation)

        class Store(FlatStore):
            async def close(self) -> None:
                generations.closed.append(generation)

        store.__class__ = Store
        return store


async def test_an_outdated_generation_is_closed_once_after_its_last_request(
    book_folder: Path,
) -> None:
    generations, catalog = ClosingStore(), MemoryCatalog()
    book = _open(FakeEmbedder(), catalog, generations)
    await book.ingest(read(book_folder))
    question = Question("When does a kettle boil?")
    first, second = book.ask(question), book.ask(question)
    await anext(first)
    await anext(second)
    old = catalog.current()
    (book_folder / "zeppelin.md").write_text("# Zeppelins\n\nA zeppelin is silver.\n")
    await book.ingest(read(book_folder))
    assert (await book.search(Question("zeppelin"))).hits[0].passage.text.startswith("A zepp")
    assert generations.closed == []
    assert isinstance([event async for event in first][-1], Reply)
    assert generations.closed == []
    await second.aclose()  # who leaves reads no more
    assert old is not None
    assert generations.closed == [old.name]
    await book.reply(question)
    await book.close()
    served = catalog.current()
    assert served is not None
    assert generations.closed == [old.name, served.name]


async def test_the_next_generation_is_opened_if_one_is_deleted_meanwhile(
    book_folder: Path,
) -> None:
    catalog = MemoryCatalog()

    class Swept(MemoryGenerationStore):
        sweep = False

        async def open(self, generation: str) -> FlatStore:
            if self.sweep:
                self.sweep = False
                (book_folder / "zeppelin.md").write_text("# Zeppelins\n\nA zeppelin is silver.\n")
                await _open(FakeEmbedder(), catalog, self).ingest(read(book_folder))
                raise IndexDamaged("The index that the catalog names is missing.")
            return await super().open(generation)

    generations = Swept()
    book = _open(FakeEmbedder(), catalog, generations)
    await book.ingest(read(book_folder))
    generations.sweep = True
    assert (await book.search(Question("zeppelin"))).hits[0].passage.text.startswith("A zepp")


async def test_questions_do_not_fail_during_repeated_ingests(
    book_folder: Path,
) -> None:
    catalog, generations = MemoryCatalog(), ClosingStore()
    book = _open(FakeEmbedder(), catalog, generations)
    await book.ingest(read(book_folder))
    asking = True

    async def ask() -> int:
        count = 0
        while asking:
            reply = await book.reply(Question("When does a kettle boil?"))
            assert isinstance(reply.outcome, Answer)
            count += 1
        return count

    readers = [asyncio.create_task(ask()) for _ in range(4)]
    for number in range(5):
        (book_folder / f"page{number}.md").write_text(f"# Page {number}\n\nNothing new.\n")
        await book.ingest(read(book_folder))
        await asyncio.sleep(0.02)
    asking = False
    assert all(await asyncio.gather(*readers))
    await book.close()
    assert len(generations.closed) == len(set(generations.closed))
