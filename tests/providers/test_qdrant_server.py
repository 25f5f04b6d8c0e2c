"""Generations on a real Qdrant server or cluster: failures, names and aliases."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.interfaces.store import IndexedPassage, PassageStore
from bythebook.language.terms import Vocabulary
from bythebook.providers.qdrant.foreign import ForeignCollection
from bythebook.providers.qdrant.nodes import Server
from bythebook.providers.qdrant.server import ServerGenerationStore
from bythebook.providers.testing import FakeEmbedder
from tests.support.samples import passage
from tests.support.servers import Node, new_shelf, running_cluster, running_server, server_shelf

pytestmark = pytest.mark.real

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32
_EMBEDDER = FakeEmbedder()
_PASSAGES = [passage(f"Kite number {n} flies in the wind.", section=f"S{n}") for n in range(30)]
_ASKED = Vocabulary.of(_PASSAGES).ask("kite 7 wind")


async def _entries() -> list[IndexedPassage]:
    vocabulary = Vocabulary.of(_PASSAGES)
    vectors = await _EMBEDDER.embed([one.text for one in _PASSAGES], role="passage")
    return [
        IndexedPassage(one, vector, vector[None], vocabulary.weigh(one))
        for one, vector in zip(_PASSAGES, vectors, strict=True)
    ]


@pytest.fixture
async def generations(qdrant_server: list[Node]) -> AsyncIterator[ServerGenerationStore]:
    async with server_shelf(qdrant_server, dimension=64) as shelf:
        yield shelf


@pytest.fixture
async def raw(qdrant_server: list[Node]) -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(url=qdrant_server[0].url, check_compatibility=False)
    yield client
    await client.close()


async def _ask_everything(store: PassageStore) -> list[object]:
    vector = (await _EMBEDDER.embed(["kite 7"], role="query"))[0]
    found = await store.find(vector, _ASKED, limit=40, filters={})
    fetched = await store.fetch([one.id for one in _PASSAGES])
    weighed = [(one.passage_id, round(one.cosine, 4), round(one.unit_cosine, 4)) for one in found]
    return [sorted(weighed), [entry.passage for entry in fetched], await store.count()]


@pytest.mark.parametrize("dead", [0, 2], ids=["the node that is asked", "another node"])
async def test_a_cluster_answers_while_one_node_is_dead(tmp_path: Path, dead: int) -> None:
    with running_cluster(tmp_path) as nodes:
        # In three parts, so that every node holds some of the book and its death is felt.
        generations = new_shelf(nodes, dimension=64, shards=3)
        assert await generations.publish(ONE, await _entries()) == 30
        store = await generations.open(ONE)
        before = await _ask_everything(store)
        assert before[-1] == len(before[0]) == 30  # type: ignore[arg-type]
        nodes[dead].kill()
        for _ in range(5):
            assert await _ask_everything(store) == before
        assert await (await generations.open(ONE)).count() == 30
        await generations.close()


async def test_a_book_is_published_while_a_node_is_dead(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as nodes:
        nodes[2].kill()
        generations = new_shelf(nodes, dimension=64, shards=3)
        assert await generations.publish(ONE, await _entries()) == 30
        assert (await _ask_everything(await generations.open(ONE)))[-1] == 30
        await generations.close()


async def test_a_collection_has_payload_indexes_and_vectors(
    generations: ServerGenerationStore, raw: AsyncQdrantClient
) -> None:
    """A vector without a name, rare words weighed by the server, an index for what is filtered."""
    await generations.publish(ONE, await _entries())
    made = await raw.get_collection(f"{generations.collection}-{ONE}")
    vectors, sparse = made.config.params.vectors, made.config.params.sparse_vectors
    assert isinstance(vectors, dict)
    assert {name: (one.size, one.distance.value) for name, one in vectors.items()} == {
        "": (64, "Cosine"),
        "units": (64, "Cosine"),
    }
    assert vectors["units"].multivector_config is not None
    assert sparse is not None
    assert sparse["terms"].modifier is models.Modifier.IDF
    indexed = {name: one.data_type.value for name, one in made.payload_schema.items()}
    assert indexed == {
        **dict.fromkeys(("chapter", "section", "module", "url", "language"), "keyword"),
        **dict.fromkeys(("difficulty", "kind"), "keyword"),
        "week": "integer",
        "hasCode": "bool",
    }


async def test_other_programs_query_a_collection_by_its_unnamed_vector(
    generations: ServerGenerationStore, raw: AsyncQdrantClient, qdrant_server: list[Node]
) -> None:
    [entry, *_] = entries = await _entries()
    await generations.publish(ONE, entries)
    assert entry.vector is not None
    name, vector = f"{generations.collection}-{ONE}", entry.vector.tolist()
    [found] = (await raw.query_points(name, query=vector, limit=1)).points
    assert found.score == pytest.approx(1)
    url = qdrant_server[0].url
    theirs = ForeignCollection(Server((url,)), name, embedder=_EMBEDDER, fields={})
    store = await theirs.open(name)
    [candidate, *_] = await store.find(entry.vector, _ASKED, limit=1, filters={})
    [fetched] = await store.fetch([candidate.passage_id])
    assert fetched.vector is not None
    assert fetched.vector.tolist() == pytest.approx(vector)
    await theirs.close()


async def test_an_index_of_another_dimension_is_reported(
    generations: ServerGenerationStore, qdrant_server: list[Node]
) -> None:
    await generations.publish(ONE, await _entries())
    other = ServerGenerationStore(
        Server((qdrant_server[0].url,), timeout_s=5.0), generations.collection, dimension=32
    )
    with pytest.raises(IndexDamaged, match=r"dimension 64.*makes 32.*ingest again"):
        await other.open(ONE)
    await other.close()


async def test_the_api_key_is_required_and_never_shown(tmp_path: Path) -> None:
    with running_server(tmp_path, api_key="open-sesame") as node:
        async with server_shelf([node], dimension=64, api_key="open-sesame") as generations:
            assert await generations.publish(ONE, await _entries()) == 30
        generations = new_shelf([node], dimension=64, api_key="wrong-word")
        with pytest.raises(StoreFailed, match="refuses the key") as failure:
            await generations.open(ONE)
        await generations.close()
    assert "wrong-word" not in str(failure.value) + repr(
        Server(("http://x",), api_key="wrong-word")
    )


async def test_a_server_that_is_not_qdrant_is_reported_with_a_hint() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p/>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        generations = ServerGenerationStore(
            Server((f"http://127.0.0.1:{port}",)), "book", dimension=64
        )
        with pytest.raises(StoreFailed, match=r"not a Qdrant server.*QDRANT_URL"):
            await generations.open(ONE)
        await generations.close()


async def test_only_generations_of_this_book_are_discarded(
    generations: ServerGenerationStore, raw: AsyncQdrantClient
) -> None:
    book = generations.collection
    others = [f"{book}-v1", f"{book}-v1-{ONE}", f"{book}s-{ONE}"]
    for name in others:
        await raw.create_collection(name, vectors_config={})
    for generation in (ONE, TWO, THREE):
        await generations.publish(generation, await _entries())
    await generations.discard(keep=[THREE, TWO])
    await generations.discard(keep=[THREE, TWO])
    left = {one.name for one in (await raw.get_collections()).collections}
    assert {name for name in left if name.startswith(book)} == {
        *others,
        f"{book}-{TWO}",
        f"{book}-{THREE}",
    }
    for name in others:
        await raw.delete_collection(name)


async def test_two_books_with_one_collection_name_are_independent(
    qdrant_server: list[Node], raw: AsyncQdrantClient
) -> None:
    first, second, third = (uuid.uuid4().hex for _ in range(3))
    server, name = Server((qdrant_server[0].url,), timeout_s=5), f"book-{uuid.uuid4().hex[:8]}"
    mine, yours = (
        ServerGenerationStore(server, name, dimension=64, owner=uuid.uuid4().hex) for _ in range(2)
    )
    await mine.publish(first, await _entries())
    await mine.discard(keep=[first])
    for generation in (second, third):
        await yours.publish(generation, await _entries())
        for _ in range(2):
            await yours.discard(keep=[generation])
    assert await (await mine.open(first)).count() == 30
    with pytest.raises(IndexDamaged):
        await yours.open(second)
    for generations in (mine, yours):
        for _ in range(2):
            await generations.discard(keep=[])
    left = [one.name for one in (await raw.get_collections()).collections]
    assert not [each for each in left if each.startswith(name)]
    await mine.close()
    await yours.close()


async def test_other_readers_find_the_served_generation_by_the_books_name(
    generations: ServerGenerationStore, raw: AsyncQdrantClient
) -> None:
    entries = await _entries()
    await generations.publish(ONE, entries)
    assert not await raw.collection_exists(generations.collection), "nothing is committed yet"
    await generations.discard(keep=[ONE])
    assert (await raw.count(generations.collection)).count == 30
    await generations.publish(TWO, entries[:7])
    assert (await raw.count(generations.collection)).count == 30
    await generations.discard(keep=[TWO, ONE])
    assert (await raw.count(generations.collection)).count == 7


async def test_a_foreign_collection_with_the_books_name_is_unchanged(
    generations: ServerGenerationStore, raw: AsyncQdrantClient
) -> None:
    await raw.create_collection(generations.collection, vectors_config={})
    await generations.publish(ONE, await _entries())
    await generations.discard(keep=[ONE])
    assert (await raw.count(generations.collection)).count == 0
    assert await (await generations.open(ONE)).count() == 30
    await raw.delete_collection(generations.collection)


async def test_a_failed_publication_leaves_no_collection(
    generations: ServerGenerationStore, raw: AsyncQdrantClient
) -> None:
    entries = await _entries()

    def broken() -> Iterator[IndexedPassage]:
        # The last one is refused after a first request was sent: it alone would fill another.
        yield from entries
        yield replace(entries[0], unit_vectors=np.zeros((4000, 63), dtype=np.float32))

    with pytest.raises(StoreFailed):
        await generations.publish(ONE, broken())
    with pytest.raises(IndexDamaged):
        await generations.open(ONE)
    assert not await raw.collection_exists(f"{generations.collection}-{ONE}")


async def test_publishing_does_not_block_the_event_loop(generations: ServerGenerationStore) -> None:
    entries, gate = await _entries(), threading.Event()

    def slow() -> Iterator[IndexedPassage]:
        assert gate.wait(20), "the event loop stood still"
        yield from entries

    publishing = asyncio.create_task(generations.publish(ONE, slow()))
    await asyncio.sleep(0.1)
    gate.set()
    assert await publishing == 30


def test_a_generation_store_works_on_several_event_loops(qdrant_server: list[Node]) -> None:
    generations = ServerGenerationStore(
        Server((qdrant_server[0].url,), timeout_s=5), "loops", dimension=64
    )

    async def count() -> int:
        return await (await generations.open(ONE)).count()

    assert asyncio.run(generations.publish(ONE, asyncio.run(_entries()))) == 30
    assert [asyncio.run(count()), asyncio.run(count())] == [30, 30]
    for _ in range(2):
        asyncio.run(generations.discard(keep=[]))
    asyncio.run(generations.close())
