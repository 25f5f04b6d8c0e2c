"""Generations on a real Qdrant server or cluster: failures, names and aliases."""

import asyncio
import json
import signal
import threading
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.interfaces.store import IndexedPassage, PassageStore
from bythebook.language.terms import Vocabulary
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


@asynccontextmanager
async def _client(node: Node) -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(url=node.url, check_compatibility=False)
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


async def test_questions_continue_while_a_node_dies_and_recovers(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as nodes:
        generations = new_shelf(nodes, dimension=64, shards=3)
        await generations.publish(ONE, await _entries())
        stream = Stream(await generations.open(ONE))
        async with stream:
            await stream.answers(20)
            await asyncio.to_thread(nodes[1].kill)
            await stream.answers(20)
            # What is written now is written without it.
            assert await generations.publish(TWO, await _entries()) == 30
            await asyncio.to_thread(nodes[1].restart)
            await asyncio.to_thread(_wait_until_whole, nodes, f"{generations.collection}-{TWO}")
            await stream.answers(20)
            # Of three nodes with two copies any one may be missing, if the others are whole.
            await asyncio.to_thread(nodes[0].kill)
            assert (await _ask_everything(await generations.open(TWO)))[-1] == 30
            await stream.answers(20)
        assert stream.failed == 0
        await generations.close()


class Stream:
    """Somebody who asks without a pause, and once more where there was no answer."""

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        self._answered = asyncio.Semaphore(0)
        self.failed = 0

    async def __aenter__(self) -> None:
        self._expected = await _ask_everything(self._store)
        self._asking = asyncio.create_task(self._ask())

    async def __aexit__(self, *exc: object) -> None:
        self._asking.cancel()

    async def answers(self, more: int) -> None:
        self._answered = asyncio.Semaphore(0)
        async with asyncio.timeout(60):
            for _ in range(more):
                await self._answered.acquire()

    async def _ask(self) -> None:
        while True:
            try:
                answer = await _ask_everything(self._store)
            except StoreFailed:
                try:
                    answer = await _ask_everything(self._store)
                except StoreFailed:
                    self.failed += 1
                    continue
            self.failed += answer != self._expected
            self._answered.release()


def _wait_until_whole(nodes: list[Node], name: str, seconds: float = 60) -> None:
    """Until every node says that every copy of every part can be read."""
    deadline = time.monotonic() + seconds
    while not all(_is_whole(node, name, len(nodes)) for node in nodes):
        assert time.monotonic() < deadline, "the node does not catch up"
        time.sleep(0.2)


def _is_whole(node: Node, name: str, size: int) -> bool:
    try:
        with urllib.request.urlopen(f"{node.url}/collections/{name}/cluster", timeout=5) as answer:
            cluster = json.load(answer)["result"]
    except OSError:
        return False
    shards = [*cluster["local_shards"], *cluster["remote_shards"]]
    return len(shards) == 2 * size and all(shard["state"] == "Active" for shard in shards)


async def test_a_book_is_published_while_a_node_is_dead(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as nodes:
        nodes[2].kill()
        generations = new_shelf(nodes, dimension=64, shards=3)
        assert await generations.publish(ONE, await _entries()) == 30
        assert (await _ask_everything(await generations.open(ONE)))[-1] == 30
        await generations.close()


@pytest.mark.parametrize(
    ("how", "said"),
    [(signal.SIGKILL, "cannot be reached"), (signal.SIGSTOP, "did not answer within 2000 ms")],
)
async def test_a_dead_or_hanging_server_fails_within_the_deadline(
    tmp_path: Path, how: signal.Signals, said: str
) -> None:
    with running_server(tmp_path) as node:
        generations = new_shelf([node], dimension=64)
        await generations.publish(ONE, await _entries())
        await generations.close()
        generations = ServerGenerationStore(
            Server((node.url,), timeout_s=2.0), generations.collection, dimension=64
        )
        store = await generations.open(ONE)
        node.process.send_signal(how)
        vector = np.ones(64, dtype=np.float32)
        for work in (
            lambda: store.find(vector, _ASKED, limit=5, filters={}),
            lambda: store.fetch([_PASSAGES[0].id]),
            store.count,
            lambda: generations.open(ONE),
        ):
            with pytest.raises(StoreFailed, match=said) as failure:
                await work()
            assert "127.0.0.1" not in str(failure.value)
        await generations.close()


class Proxy:
    """Between us and a server: counts what comes back, and can stop passing it on."""

    def __init__(self, url: str) -> None:
        self._port = urlsplit(url).port
        self.left: int | None = None  # bytes that still come through before it stalls
        self.received = 0

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, there[1], counted=False))
                both.create_task(self._pass_on(there[0], writer, counted=True))
        except* OSError:
            pass
        finally:
            writer.close()
            there[1].close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        while piece := await reader.read(4096):
            if counted:
                self.received += len(piece)
                if self.left is not None:
                    piece, self.left = piece[: self.left], max(0, self.left - len(piece))
            writer.write(piece)
            await writer.drain()
            if self.left == 0 and counted:
                await asyncio.sleep(30)
        writer.close()


@pytest.mark.parametrize("left", [0, 300], ids=["before the answer", "within the answer"])
async def test_a_stalling_server_fails_within_the_deadline(
    qdrant_server: list[Node], left: int
) -> None:
    proxy = Proxy(qdrant_server[0].url)
    async with server_shelf(qdrant_server, dimension=64) as whole, proxy as url:
        await whole.publish(ONE, await _entries())
        generations = ServerGenerationStore(
            Server((url,), timeout_s=2.0), whole.collection, dimension=64
        )
        store = await generations.open(ONE)
        proxy.left = left
        with pytest.raises(StoreFailed, match="did not answer within 2000 ms"):
            await store.find(np.ones(64, dtype=np.float32), _ASKED, limit=5, filters={})
        await generations.close()


async def test_a_stalling_node_is_skipped_by_later_calls(
    qdrant_server: list[Node],
) -> None:
    proxy = Proxy(qdrant_server[0].url)
    async with server_shelf(qdrant_server, dimension=64) as whole, proxy as url:
        await whole.publish(ONE, await _entries())
        server = Server((url, qdrant_server[0].url), timeout_s=4.0)
        generations = ServerGenerationStore(server, whole.collection, dimension=64)
        store = await generations.open(ONE)
        proxy.left = 0
        assert (await _ask_everything(store))[-1] == 30
        heard = proxy.received
        assert (await _ask_everything(store))[-1] == 30
        assert proxy.received == heard, "the node that answered is asked first"
        await generations.close()


async def test_a_search_transfers_only_the_vectors_of_its_hits(
    qdrant_server: list[Node],
) -> None:
    proxy, generator = Proxy(qdrant_server[0].url), np.random.default_rng(1)
    vectors = generator.standard_normal((30, 9, 384)).astype(np.float32)
    vocabulary = Vocabulary.of(_PASSAGES)
    entries = [
        IndexedPassage(one, some[0], some[1:], vocabulary.weigh(one))
        for one, some in zip(_PASSAGES, vectors, strict=True)
    ]
    async with server_shelf(qdrant_server, dimension=384) as whole, proxy as url:
        await whole.publish(ONE, entries)
        generations = ServerGenerationStore(
            Server((url,), timeout_s=5.0), whole.collection, dimension=384
        )
        store = await generations.open(ONE)
        before = proxy.received
        found = await store.find(vectors[0, 0], _ASKED, limit=24, filters={})
        searched = proxy.received - before
        await store.fetch([one.passage_id for one in found])
        fetched = proxy.received - before - searched
        assert searched < fetched / 50
        await generations.close()


async def test_a_collection_has_payload_indexes_and_vectors(qdrant_server: list[Node]) -> None:
    """Named vectors, rare words weighed by the server, and an index for whatever is filtered."""
    async with (
        server_shelf(qdrant_server, dimension=64) as generations,
        _client(qdrant_server[0]) as raw,
    ):
        await generations.publish(ONE, await _entries())
        made = await raw.get_collection(f"{generations.collection}-{ONE}")
    vectors, sparse = made.config.params.vectors, made.config.params.sparse_vectors
    assert isinstance(vectors, dict)
    assert {name: (one.size, one.distance.value) for name, one in vectors.items()} == {
        "passage": (64, "Cosine"),
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


async def test_an_index_of_another_dimension_is_reported(qdrant_server: list[Node]) -> None:
    async with server_shelf(qdrant_server, dimension=64) as generations:
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


async def test_only_generations_of_this_book_are_discarded(qdrant_server: list[Node]) -> None:
    async with (
        server_shelf(qdrant_server, dimension=64) as generations,
        _client(qdrant_server[0]) as raw,
    ):
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
    qdrant_server: list[Node],
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
    async with _client(qdrant_server[0]) as raw:
        left = [one.name for one in (await raw.get_collections()).collections]
    assert not [each for each in left if each.startswith(name)]
    await mine.close()
    await yours.close()


async def test_other_readers_find_the_served_generation_by_the_books_name(
    qdrant_server: list[Node],
) -> None:
    entries = await _entries()
    async with (
        server_shelf(qdrant_server, dimension=64) as generations,
        _client(qdrant_server[0]) as raw,
    ):
        await generations.publish(ONE, entries)
        assert not await raw.collection_exists(generations.collection), "nothing is committed yet"
        await generations.discard(keep=[ONE])
        assert (await raw.count(generations.collection)).count == 30
        await generations.publish(TWO, entries[:7])
        assert (await raw.count(generations.collection)).count == 30
        await generations.discard(keep=[TWO, ONE])
        assert (await raw.count(generations.collection)).count == 7


async def test_a_foreign_collection_with_the_books_name_is_unchanged(
    qdrant_server: list[Node],
) -> None:
    async with (
        server_shelf(qdrant_server, dimension=64) as generations,
        _client(qdrant_server[0]) as raw,
    ):
        await raw.create_collection(generations.collection, vectors_config={})
        await generations.publish(ONE, await _entries())
        await generations.discard(keep=[ONE])
        assert (await raw.count(generations.collection)).count == 0
        assert await (await generations.open(ONE)).count() == 30
        await raw.delete_collection(generations.collection)


async def test_a_failed_publication_leaves_no_collection(qdrant_server: list[Node]) -> None:
    entries = await _entries()

    def broken() -> Iterator[IndexedPassage]:
        # The last one is refused after a first request was sent: it alone would fill another.
        yield from entries
        yield replace(entries[0], unit_vectors=np.zeros((4000, 63), dtype=np.float32))

    async with (
        server_shelf(qdrant_server, dimension=64) as generations,
        _client(qdrant_server[0]) as raw,
    ):
        with pytest.raises(StoreFailed):
            await generations.publish(ONE, broken())
        with pytest.raises(IndexDamaged):
            await generations.open(ONE)
        assert not await raw.collection_exists(f"{generations.collection}-{ONE}")


async def test_publishing_does_not_block_the_event_loop(qdrant_server: list[Node]) -> None:
    entries, gate = await _entries(), threading.Event()

    def slow() -> Iterator[IndexedPassage]:
        assert gate.wait(20), "the event loop stood still"
        yield from entries

    async with server_shelf(qdrant_server, dimension=64) as generations:
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
