"""The small book on fakes, served without a socket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from bythebook.access_stores import AccessStores, open_access_stores
from bythebook.book import Book
from bythebook.errors import EmbedderFailed
from bythebook.interfaces.models import TextRole
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.app import create_app
from tests.support.samples import read

if TYPE_CHECKING:
    from bythebook.types import Vectors


class FragileEmbedder(FakeEmbedder):
    """Works until it is told to break."""

    broken = False

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        if self.broken:
            raise EmbedderFailed("The embedder did not answer.")
        return await super().embed(texts, role=role)


@pytest.fixture
def embedder() -> FragileEmbedder:
    return FragileEmbedder()


@pytest.fixture
def parts() -> dict[str, object]:
    """Further parts of the book, which tests override."""
    return {}


@pytest.fixture
async def library(book_folder: Path, embedder: FragileEmbedder, parts: dict[str, object]) -> Book:
    return await small_library(book_folder, embedder=embedder, **parts)


def fakes() -> dict[str, Any]:
    return {
        "embedder": FakeEmbedder(),
        "store": MemoryGenerationStore(),
        "catalog": MemoryCatalog(),
        "threads": MemoryThreads(),
    }


async def small_library(book_folder: Path, **parts: object) -> Book:
    """Ingest a folder into a book on fakes."""
    library = Book(**(fakes() | parts))
    await library.ingest(read(book_folder))
    return library


@pytest.fixture
def client(library: Book) -> Iterator[TestClient]:
    with TestClient(create_app(library)) as client:
        yield client


@pytest.fixture
def stores() -> AccessStores:
    return open_access_stores()
