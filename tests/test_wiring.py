"""Providers are chosen by the settings, and what is missing is named with its cure."""

import asyncio
import sys
from pathlib import Path

import pytest

from bythebook.book import Book
from bythebook.chunking.read_book import read_book
from bythebook.components import Components
from bythebook.config.settings import load_settings
from bythebook.errors import ConfigurationError, EmbedderMismatch, IndexDamaged, UnknownProvider
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryStore,
    MemoryThreads,
)
from bythebook.types import Answer, Question, Reply
from bythebook.wiring import build_book
from tests.samples import SAMPLE_BOOK, read


def test_a_store_that_nobody_knows_is_named(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "shoebox"}, environ={})
    with pytest.raises(ConfigurationError, match=r"shoebox.*edge or qdrant"):
        build_book(settings, new=True)


def test_a_server_needs_an_address(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "qdrant"}, environ={})
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        build_book(settings, new=True)


def test_a_package_that_is_not_installed_comes_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("qdrant.server", "qdrant.nodes"):
        monkeypatch.delitem(sys.modules, f"bythebook.providers.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    settings = load_settings({"home": tmp_path}, environ={"QDRANT_URL": "http://127.0.0.1:6333"})
    with pytest.raises(UnknownProvider, match=r"qdrant_client.*bythebook\[qdrant\]"):
        build_book(settings, new=True)


async def test_a_closed_library_has_let_go_of_everything_and_opens_again() -> None:
    closed: list[str] = []

    class Shelf(MemoryGenerationStore):
        async def close(self) -> None:
            closed.append("shelf")

    class Threads(MemoryThreads):
        async def close(self) -> None:
            closed.append("database")

    library = Book(
        Components(
            embedder=FakeEmbedder(),
            store=Shelf(),
            catalog=MemoryCatalog(),
            threads=Threads(),
        )
    )
    await library.ingest(read_book(SAMPLE_BOOK / "docs"))
    assert (await library.search(Question("robots"))).hits
    await library.close()
    assert closed == ["shelf", "database"]
    assert (await library.search(Question("robots"))).hits


def _library(
    embedder: FakeEmbedder, catalog: MemoryCatalog, shelf: MemoryGenerationStore, **more
) -> Book:  # type: ignore[no-untyped-def]
    threads = MemoryThreads()
    return Book(
        Components(embedder=embedder, store=shelf, catalog=catalog, threads=threads, **more)
    )


async def test_an_open_library_follows_its_book_to_another_embedder(book_folder: Path) -> None:
    catalog, shelf, question = (
        MemoryCatalog(),
        MemoryGenerationStore(),
        Question("When does a kettle boil?"),
    )
    one, other = FakeEmbedder(), FakeEmbedder(name="fake:other")
    await _library(one, catalog, shelf).ingest(read(book_folder))
    fixed = _library(one, catalog, shelf)
    following = _library(one, catalog, shelf, switch_embedder=lambda name: (other, shelf))
    assert (await following.search(question)).hits
    await _library(other, catalog, shelf).ingest(read(book_folder))
    assert (await following.search(question)).hits
    assert other.calls[-1] == [question.text]
    with pytest.raises(EmbedderMismatch, match=r"fake:other.*fake:bag"):
        await fixed.search(question)


class ClosingShelf(MemoryGenerationStore):
    """Knows which generations are open, and how often each was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[str] = []

    async def open(self, generation: str) -> MemoryStore:
        shelf, store = self, await super().open(generation)

        class Store(MemoryStore):
            async def close(self) -> None:
                shelf.closed.append(generation)

        store.__class__ = Store
        return store


async def test_a_generation_is_closed_once_with_the_last_question_that_reads_it(
    book_folder: Path,
) -> None:
    shelf, catalog = ClosingShelf(), MemoryCatalog()
    library = _library(FakeEmbedder(), catalog, shelf)
    await library.ingest(read(book_folder))
    question = Question("When does a kettle boil?")
    first, second = library.ask(question), library.ask(question)
    await anext(first)
    await anext(second)
    old = catalog.current()
    (book_folder / "zeppelin.md").write_text("# Zeppelins\n\nA zeppelin is silver.\n")
    await library.ingest(read(book_folder))
    assert (await library.search(Question("zeppelin"))).hits[0].passage.text.startswith("A zepp")
    assert shelf.closed == []
    assert isinstance([event async for event in first][-1], Reply)
    assert shelf.closed == []
    await second.aclose()  # who leaves reads no more
    assert old is not None
    assert shelf.closed == [old.name]
    await library.reply(question)
    await library.close()
    served = catalog.current()
    assert served is not None
    assert shelf.closed == [old.name, served.name]


async def test_a_generation_taken_away_while_it_is_opened_is_followed_by_the_next(
    book_folder: Path,
) -> None:
    catalog = MemoryCatalog()

    class Swept(MemoryGenerationStore):
        sweep = False

        async def open(self, generation: str) -> MemoryStore:
            if self.sweep:
                self.sweep = False
                (book_folder / "zeppelin.md").write_text("# Zeppelins\n\nA zeppelin is silver.\n")
                await _library(FakeEmbedder(), catalog, self).ingest(read(book_folder))
                raise IndexDamaged("The index that the catalog names is missing.")
            return await super().open(generation)

    shelf = Swept()
    library = _library(FakeEmbedder(), catalog, shelf)
    await library.ingest(read(book_folder))
    shelf.sweep = True
    assert (await library.search(Question("zeppelin"))).hits[0].passage.text.startswith("A zepp")


async def test_questions_never_fail_while_the_book_is_ingested_again_and_again(
    book_folder: Path,
) -> None:
    catalog, shelf = MemoryCatalog(), ClosingShelf()
    library = _library(FakeEmbedder(), catalog, shelf)
    await library.ingest(read(book_folder))
    asking = True

    async def ask() -> int:
        count = 0
        while asking:
            reply = await library.reply(Question("When does a kettle boil?"))
            assert isinstance(reply.outcome, Answer)
            count += 1
        return count

    readers = [asyncio.create_task(ask()) for _ in range(4)]
    for number in range(5):
        (book_folder / f"page{number}.md").write_text(f"# Page {number}\n\nNothing new.\n")
        await library.ingest(read(book_folder))
        await asyncio.sleep(0.02)
    asking = False
    assert all(await asyncio.gather(*readers))
    await library.close()
    assert len(shelf.closed) == len(set(shelf.closed))
