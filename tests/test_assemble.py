"""Providers are chosen by the settings, and what is missing is named with its cure."""

import sys
from pathlib import Path

import pytest

from bythebook.assemble import Library, open_library
from bythebook.book.site import read_book
from bythebook.errors import ConfigurationError, EmbedderMismatch, UnknownProvider
from bythebook.model import Question
from bythebook.providers.fake import FakeEmbedder, MemoryCatalog, MemoryShelf, MemoryThreads
from bythebook.settings import load_settings
from tests.samples import SAMPLE_BOOK, read


def test_a_store_that_nobody_knows_is_named(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "shoebox"}, environ={})
    with pytest.raises(ConfigurationError, match=r"shoebox.*edge or qdrant"):
        open_library(settings, new=True)


def test_a_server_needs_an_address(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "qdrant"}, environ={})
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        open_library(settings, new=True)


def test_a_package_that_is_not_installed_comes_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("qdrant_server", "qdrant_nodes"):
        monkeypatch.delitem(sys.modules, f"bythebook.providers.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    settings = load_settings({"home": tmp_path}, environ={"QDRANT_URL": "http://127.0.0.1:6333"})
    with pytest.raises(UnknownProvider, match=r"qdrant_client.*bythebook\[qdrant\]"):
        open_library(settings, new=True)


async def test_a_closed_library_has_let_go_of_everything_and_opens_again() -> None:
    closed: list[str] = []

    class Shelf(MemoryShelf):
        async def close(self) -> None:
            closed.append("shelf")

    class Threads(MemoryThreads):
        async def close(self) -> None:
            closed.append("database")

    library = Library(
        embedder=FakeEmbedder(),
        shelf=Shelf(),
        catalog=MemoryCatalog(),
        threads=Threads(),
    )
    await library.ingest(read_book(SAMPLE_BOOK / "docs"))
    assert (await library.search(Question("robots"))).hits
    await library.close()
    assert closed == ["shelf", "database"]
    assert (await library.search(Question("robots"))).hits


def _library(embedder: FakeEmbedder, catalog: MemoryCatalog, shelf: MemoryShelf, **more) -> Library:  # type: ignore[no-untyped-def]
    threads = MemoryThreads()
    return Library(embedder=embedder, shelf=shelf, catalog=catalog, threads=threads, **more)


async def test_an_open_library_follows_its_book_to_another_embedder(book_folder: Path) -> None:
    catalog, shelf, question = MemoryCatalog(), MemoryShelf(), Question("When does a kettle boil?")
    one, other = FakeEmbedder(), FakeEmbedder(name="fake:other")
    await _library(one, catalog, shelf).ingest(read(book_folder))
    fixed = _library(one, catalog, shelf)
    following = _library(one, catalog, shelf, switch=lambda name: (other, shelf))
    assert (await following.search(question)).hits
    await _library(other, catalog, shelf).ingest(read(book_folder))
    assert (await following.search(question)).hits
    assert other.calls[-1] == [question.text]
    with pytest.raises(EmbedderMismatch, match=r"fake:other.*fake:bag"):
        await fixed.search(question)
