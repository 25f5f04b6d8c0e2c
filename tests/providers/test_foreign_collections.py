"""Collections filled by other tools in each contract's layout, on a real server."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.errors import ConfigurationError, EmbedderMismatch
from bythebook.providers.qdrant.foreign import ForeignCollection
from bythebook.providers.qdrant.nodes import Server
from bythebook.providers.testing import FakeEmbedder, MemoryThreads
from bythebook.refusals import Refusal
from bythebook.types import Answer, Question
from tests.support.samples import read
from tests.support.servers import Node

pytestmark = pytest.mark.real

_TEXTS = [
    "A kettle boils water at 100 degrees Celsius. It switches itself off by a bimetal strip.",
    "A kite flies because the wind pushes it upwards. The string keeps it from drifting away.",
    "Spruce is a light wood. Sticks of spruce make a good frame.",
]


def _payload(preset: str, number: int, text: str) -> dict[str, Any]:
    """The payload of a passage in each contract's layout."""
    url = f"https://example.org/docs/page{number}"
    place = {"chapter": "Chapter 1", "section": f"Section {number}"}
    counted = {"chunk_index": number, "content_hash": "d" * 64}
    return {
        "query": {
            "text": text,
            **place,
            "module": "module-1",
            "week": number + 1,
            "difficulty": "beginner",
            "keywords": ["kettle", "kite"],
            "hasCode": number == 2,
            "language": "en",
        },
        "ask": {
            "content": text,
            "chapter": place["chapter"],
            "section_title": place["section"],
            "source_url": url,
            "chunk_id": f"chunk-{number}",
            "page_title": "Household",
            "position": number,
            "content_hash": "d" * 32,
        },
        "envelope": {"text": text, **place, "source_url": url},
        "plain": {"text": text, **place, **counted, "filename": "01-household.mdx"},
        "chat": {"text": text, **place, **counted, "url": url},
    }[preset]


@asynccontextmanager
async def _collection(
    node: Node, preset: str, *, dimension: int, vector: str | None = None
) -> AsyncIterator[str]:
    """A collection with the preset's configuration; ids are numbers for chat, else UUIDs."""
    name, embedder = f"{preset}-{uuid.uuid4().hex[:8]}", FakeEmbedder(dimension=dimension)
    params = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
    client = AsyncQdrantClient(url=node.url, check_compatibility=False)
    await client.create_collection(name, vectors_config={vector: params} if vector else params)
    vectors = (await embedder.embed(_TEXTS, role="passage")).tolist()
    points = [
        models.PointStruct(
            id=number if preset == "chat" else str(uuid.uuid4()),
            vector={vector: vectors[number]} if vector else vectors[number],
            payload=_payload(preset, number, text),
        )
        for number, text in enumerate(_TEXTS)
    ]
    await client.upsert(name, points, wait=True)
    try:
        yield name
    finally:
        await client.delete_collection(name)
        await client.close()


def _library(node: Node, preset: str, name: str, *, dimension: int, **more: Any) -> Book:
    fields = load_settings({"preset": preset}, environ={}).collection.fields
    embedder = FakeEmbedder(dimension=dimension)
    server = Server((node.url,), timeout_s=5.0)
    book = ForeignCollection(server, name, embedder=embedder, **{"fields": fields, **more})
    return Book(embedder=embedder, store=book, catalog=book, threads=MemoryThreads())


@pytest.mark.parametrize(
    ("preset", "dimension"),
    [("query", 1024), ("ask", 1024), ("envelope", 1024), ("plain", 768), ("chat", 1536)],
)
async def test_collections_in_each_layout_are_searched(
    preset: str, dimension: int, qdrant_server: list[Node]
) -> None:
    (node,) = qdrant_server
    async with _collection(node, preset, dimension=dimension) as name:
        library = _library(node, preset, name, dimension=dimension)
        reply = await library.reply(Question("At how many degrees does a kettle boil water?"))
        assert isinstance(reply.outcome, Answer)
        assert "100 degrees" in reply.outcome.text
        place = reply.outcome.citations[0].place
        assert (place.chapter, place.section) == ("Chapter 1", ("Section 0",))
        if preset in ("ask", "envelope", "chat"):
            assert place.url == "https://example.org/docs/page0"
        if preset == "plain":
            assert place.file == "01-household.mdx"
        off = await library.reply(Question("Who won the chess tournament in Baku?"))
        assert isinstance(off.outcome, Refusal)
        assert set((await library.health()).values()) == {"ok"}


async def test_filters_use_the_configured_field_names(qdrant_server: list[Node]) -> None:
    (node,) = qdrant_server
    async with _collection(node, "ask", dimension=64) as name:
        library = _library(node, "ask", name, dimension=64)
        found = await library.search(Question("wind", filters={"section": "Section 2"}))
        assert [hit.passage.place.heading for hit in found.hits] == ["Section 2"]
    async with _collection(node, "query", dimension=64) as name:
        library = _library(node, "query", name, dimension=64)
        found = await library.search(Question("wind", filters={"week": 2, "hasCode": False}))
        assert [hit.passage.metadata.week for hit in found.hits] == [2]


async def test_a_named_vector_is_used(qdrant_server: list[Node]) -> None:
    (node,) = qdrant_server
    async with _collection(node, "chat", dimension=64, vector="dense") as name:
        for more in ({}, {"vector": "dense"}):
            library = _library(node, "chat", name, dimension=64, **more)
            found = await library.search(Question("Why does a kite fly?"))
            assert found.hits[0].passage.text == _TEXTS[1]
        with pytest.raises(ConfigurationError, match=r"dense.*collection\.vector"):
            await _library(node, "chat", name, dimension=64, vector="other").context()


async def test_an_unsuitable_collection_is_reported_with_a_hint(qdrant_server: list[Node]) -> None:
    (node,) = qdrant_server
    async with _collection(node, "chat", dimension=64) as name:
        with pytest.raises(EmbedderMismatch, match=r"dimension 64.*makes 32"):
            await _library(node, "chat", name, dimension=32).context()
        with pytest.raises(ConfigurationError, match=r"collection\.fields"):
            await _library(node, "ask", name, dimension=64).context()
        with pytest.raises(ConfigurationError, match=r"collection\.name"):
            await _library(node, "chat", "nowhere", dimension=64).context()


async def test_a_foreign_collection_is_never_written(
    qdrant_server: list[Node], book_folder: Path
) -> None:
    (node,) = qdrant_server
    async with _collection(node, "chat", dimension=64) as name:
        library = _library(node, "chat", name, dimension=64)
        with pytest.raises(ConfigurationError, match="read-only"):
            await library.ingest(read(book_folder))


async def test_settings_open_a_foreign_collection(
    tmp_path: Path, qdrant_server: list[Node]
) -> None:
    (node,) = qdrant_server
    async with _collection(node, "chat", dimension=384) as name:
        collection = {"name": name, "existing": True}
        flags = {"home": tmp_path / "home", "preset": "chat", "collection": collection}
        settings = load_settings(flags, environ={"QDRANT_URL": node.url})
        # Filled by another embedder than the one that asks: it is found, if not by meaning.
        found = await Book(settings).search(Question("Why does a kite fly?"))
        assert {hit.passage.text for hit in found.hits} == set(_TEXTS)
