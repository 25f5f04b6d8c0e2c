"""The store on a real Qdrant server: what goes on when a node dies, and what is left alone."""

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.index.lexicon import Vocabulary
from bythebook.ports import Entry, PassageStore
from bythebook.providers.fake import FakeEmbedder
from bythebook.providers.qdrant_server import Server, ServerShelf
from tests.samples import passage
from tests.servers import Node, new_shelf, running_cluster, running_server, server_shelf

pytestmark = pytest.mark.real

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32
_EMBEDDER = FakeEmbedder()
_PASSAGES = [passage(f"Kite number {n} flies in the wind.", section=f"S{n}") for n in range(30)]
_ASKED = Vocabulary.of(_PASSAGES).ask("kite 7 wind")


async def _entries() -> list[Entry]:
    vocabulary = Vocabulary.of(_PASSAGES)
    vectors = await _EMBEDDER.embed([one.text for one in _PASSAGES], role="passage")
    return [
        Entry(one, vector, vector[None], vocabulary.weigh(one))
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
async def test_answers_go_on_when_a_node_of_the_cluster_dies(tmp_path: Path, dead: int) -> None:
    with running_cluster(tmp_path) as nodes:
        # In three parts, so that every node holds some of the book and its death is felt.
        shelf = new_shelf(nodes, dimension=64, shards=3)
        assert await shelf.publish(ONE, await _entries()) == 30
        store = await shelf.open(ONE)
        before = await _ask_everything(store)
        assert before[-1] == len(before[0]) == 30  # type: ignore[arg-type]
        nodes[dead].kill()
        for _ in range(5):
            assert await _ask_everything(store) == before
        assert await (await shelf.open(ONE)).count() == 30
        await shelf.close()


async def test_a_book_is_published_although_a_node_is_dead(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as nodes:
        nodes[2].kill()
        shelf = new_shelf(nodes, dimension=64, shards=3)
        assert await shelf.publish(ONE, await _entries()) == 30
        assert (await _ask_everything(await shelf.open(ONE)))[-1] == 30
        await shelf.close()


@pytest.mark.parametrize(
    ("how", "said"),
    [(signal.SIGKILL, "cannot be reached"), (signal.SIGSTOP, "did not answer within 500 ms")],
)
async def test_a_server_that_is_gone_or_hangs_is_a_failure_within_the_deadline(
    tmp_path: Path, how: signal.Signals, said: str
) -> None:
    with running_server(tmp_path) as node:
        shelf = new_shelf([node], dimension=64)
        await shelf.publish(ONE, await _entries())
        await shelf.close()
        shelf = ServerShelf(Server((node.url,), timeout_s=0.5), shelf.collection, dimension=64)
        store = await shelf.open(ONE)
        node.process.send_signal(how)
        vector = np.ones(64, dtype=np.float32)
        for work in (
            lambda: store.find(vector, _ASKED, limit=5, filters={}),
            lambda: store.fetch([_PASSAGES[0].id]),
            store.count,
            lambda: shelf.open(ONE),
        ):
            began = time.monotonic()
            with pytest.raises(StoreFailed, match=said) as failure:
                await work()
            assert time.monotonic() - began < 1.5
            assert "127.0.0.1" not in str(failure.value)
        await shelf.close()


async def test_a_key_is_asked_for_and_never_shown(tmp_path: Path) -> None:
    with running_server(tmp_path, api_key="open-sesame") as node:
        async with server_shelf([node], dimension=64, api_key="open-sesame") as shelf:
            assert await shelf.publish(ONE, await _entries()) == 30
        shelf = new_shelf([node], dimension=64, api_key="wrong-word")
        with pytest.raises(StoreFailed, match="refuses the key") as failure:
            await shelf.open(ONE)
        await shelf.close()
    assert "wrong-word" not in str(failure.value) + repr(
        Server(("http://x",), api_key="wrong-word")
    )


async def test_what_is_not_qdrant_is_a_failure_with_a_cure() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p/>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        shelf = ServerShelf(Server((f"http://127.0.0.1:{port}",)), "book", dimension=64)
        with pytest.raises(StoreFailed, match=r"not a Qdrant server.*QDRANT_URL"):
            await shelf.open(ONE)
        await shelf.close()


async def test_only_generations_of_this_book_are_discarded(qdrant_server: list[Node]) -> None:
    async with server_shelf(qdrant_server, dimension=64) as shelf, _client(qdrant_server[0]) as raw:
        book = shelf.collection
        others = [f"{book}-v1", f"{book}-v1-{ONE}", f"{book}s-{ONE}"]
        for name in others:
            await raw.create_collection(name, vectors_config={})
        for generation in (ONE, TWO, THREE):
            await shelf.publish(generation, await _entries())
        await shelf.discard(keep=[THREE, TWO])
        await shelf.discard(keep=[THREE, TWO])
        left = {one.name for one in (await raw.get_collections()).collections}
        assert {name for name in left if name.startswith(book)} == {
            *others,
            f"{book}-{TWO}",
            f"{book}-{THREE}",
        }
        for name in others:
            await raw.delete_collection(name)


async def test_other_readers_find_the_served_generation_by_the_books_name(
    qdrant_server: list[Node],
) -> None:
    entries = await _entries()
    async with server_shelf(qdrant_server, dimension=64) as shelf, _client(qdrant_server[0]) as raw:
        await shelf.publish(ONE, entries)
        assert not await raw.collection_exists(shelf.collection), "nothing is committed yet"
        await shelf.discard(keep=[ONE])
        assert (await raw.count(shelf.collection)).count == 30
        await shelf.publish(TWO, entries[:7])
        assert (await raw.count(shelf.collection)).count == 30
        await shelf.discard(keep=[TWO, ONE])
        assert (await raw.count(shelf.collection)).count == 7


async def test_somebody_elses_collection_of_the_books_name_is_left_alone(
    qdrant_server: list[Node],
) -> None:
    async with server_shelf(qdrant_server, dimension=64) as shelf, _client(qdrant_server[0]) as raw:
        await raw.create_collection(shelf.collection, vectors_config={})
        await shelf.publish(ONE, await _entries())
        await shelf.discard(keep=[ONE])
        assert (await raw.count(shelf.collection)).count == 0
        assert await (await shelf.open(ONE)).count() == 30
        await raw.delete_collection(shelf.collection)


async def test_a_publication_that_breaks_off_leaves_nothing(qdrant_server: list[Node]) -> None:
    entries = await _entries()

    def broken() -> Iterator[Entry]:
        # The last one is refused after a first request was sent: it alone would fill another.
        yield from entries
        yield replace(entries[0], unit_vectors=np.zeros((4000, 63), dtype=np.float32))

    async with server_shelf(qdrant_server, dimension=64) as shelf, _client(qdrant_server[0]) as raw:
        with pytest.raises(StoreFailed):
            await shelf.publish(ONE, broken())
        with pytest.raises(IndexDamaged):
            await shelf.open(ONE)
        assert not await raw.collection_exists(f"{shelf.collection}-{ONE}")


async def test_publishing_does_not_hold_up_questions(qdrant_server: list[Node]) -> None:
    entries, gate = await _entries(), threading.Event()

    def slow() -> Iterator[Entry]:
        assert gate.wait(20), "the event loop stood still"
        yield from entries

    async with server_shelf(qdrant_server, dimension=64) as shelf:
        publishing = asyncio.create_task(shelf.publish(ONE, slow()))
        await asyncio.sleep(0.1)
        gate.set()
        assert await publishing == 30


def test_a_shelf_outlives_an_event_loop(qdrant_server: list[Node]) -> None:
    shelf = ServerShelf(Server((qdrant_server[0].url,), timeout_s=5), "loops", dimension=64)

    async def count() -> int:
        return await (await shelf.open(ONE)).count()

    assert asyncio.run(shelf.publish(ONE, asyncio.run(_entries()))) == 30
    assert [asyncio.run(count()), asyncio.run(count())] == [30, 30]
    for _ in range(2):
        asyncio.run(shelf.discard(keep=[]))
    asyncio.run(shelf.close())
