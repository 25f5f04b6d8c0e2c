"""An ingest that is killed, at any instant, loses nothing, doubles nothing and leaves nothing."""

import asyncio
import random
import sqlite3
import time
from pathlib import Path

import pytest

from bythebook.book.site import read_book
from bythebook.index.catalog import vector_key
from bythebook.model import Passage, Question
from tests.index.killing import Bench, write_edition
from tests.servers import Node

_KILLS = 100


def _book(bench: Bench) -> dict[str, Passage]:
    return {passage.id: passage for passage in read_book(bench.docs).passages}


def _served(bench: Bench) -> dict[str, Passage]:
    """What a reader who opens the book now is served, after asking it something."""
    return asyncio.run(_read(bench))


async def _read(bench: Bench) -> dict[str, Passage]:
    library, catalog = bench.library(), bench.catalog()
    if catalog.current() is None:
        return {}
    passages = catalog.passages()
    store = (await library.desk()).index.store
    fetched = {entry.passage.id: entry.passage for entry in await store.fetch(list(passages))}
    assert fetched == passages
    assert await store.count() == len(passages)
    found = await library.search(Question("What does part 1 of a page say?"))
    assert found.hits
    assert all(hit.passage == passages[hit.passage.id] for hit in found.hits)
    return passages


def _embedded(bench: Bench) -> list[str]:
    return bench.log.read_text().splitlines() if bench.log.exists() else []


class Witness:
    """Looks at the book after each ingest, killed or not."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._before = _served(bench)
        self._kept: set[str] = set()
        self._read = 0

    def check(self, *, finished: bool) -> None:
        book, served = _book(self._bench), _served(self._bench)
        assert served == book or (served == self._before and not finished)
        self._nothing_is_embedded_again(book)
        self._before = served

    def _nothing_is_embedded_again(self, book: dict[str, Passage]) -> None:
        embedded, kept = set(_embedded(self._bench)[self._read :]), self._kept
        known = [p for p in book.values() if vector_key(p) in kept]
        assert not embedded & {repr(passage.embedded_text) for passage in known}
        self._read = len(_embedded(self._bench))
        self._kept = self._bench.catalog().known_vectors("fake:bag")


def _nothing_is_left_over(bench: Bench) -> None:
    catalog = bench.catalog()
    current = catalog.current()
    assert current is not None
    assert catalog.known_vectors("fake:bag") == {vector_key(p) for p in _book(bench).values()}
    with sqlite3.connect(bench.home / "bythebook.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    files = {path.name for path in bench.home.iterdir()}
    assert files <= {
        *("bythebook.db", "bythebook.db-wal", "bythebook.db-shm", "ingest.lock", "generations")
    }
    if bench.server is None:
        # The served one, and the one before it, which a question may still be reading.
        generations = {path.name for path in (bench.home / "generations").iterdir()}
        assert current.name in generations
        assert len(generations) <= 2
        assert all(len(name) == 32 for name in generations)


def test_a_hundred_kills_at_random_instants(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, bench = random.Random(seed), Bench(tmp_path)
    write_edition(bench.docs, 0)
    assert bench.run()
    witness = Witness(bench)
    edition, killed, duration = 0, 0, 0.3
    while killed < _KILLS:
        edition += chance.random() < 0.5  # else the killed one is tried again
        write_edition(bench.docs, edition)
        began, process = time.monotonic(), bench.start()
        process.join(chance.uniform(0, 1.1 * duration))
        process.kill()
        process.join(60)
        if process.exitcode == 0:
            duration = (duration + time.monotonic() - began) / 2
        killed += process.exitcode != 0
        witness.check(finished=process.exitcode == 0)
    write_edition(bench.docs, edition + 1)
    assert bench.run()
    witness.check(finished=True)
    _nothing_is_left_over(bench)


@pytest.mark.parametrize("store", ["edge", pytest.param("server", marks=pytest.mark.real)])
def test_a_kill_between_any_two_steps(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Around each call of embedder, catalog and shelf: between commit and discard, too."""
    address = None
    if store == "server":
        nodes: list[Node] = request.getfixturevalue("qdrant_server")
        address = nodes[0].url
    bench = Bench(tmp_path, address)
    write_edition(bench.docs, 0)
    assert bench.run()
    witness = Witness(bench)
    step, survived = 0, False
    while not survived:
        write_edition(bench.docs, step + 1)
        survived = bench.run(dies_at=step)
        witness.check(finished=survived)
        step += 1
    assert step > 10
    _nothing_is_left_over(bench)
