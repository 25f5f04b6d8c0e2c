"""Check a book after each ingest, killed or not, and count what is wrong."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from bythebook.ingestion.read_book import read_book
from bythebook.text.passage_records import to_json, vector_key
from bythebook.types import Passage, Question
from reliability.crash import Bench

_EMBEDDER = "fake:bag"
_QUESTION = Question("What does part 1 of a page say?")
_AT_HOME = {
    *("bythebook.db", "bythebook.db-wal", "bythebook.db-shm"),
    *("ingest.lock", "generations", "sources.json"),
}


@dataclass
class Tally:
    acknowledged: int = 0  # vectors and swaps that the catalog said it had
    lost: int = 0  # … and had not, after the kill
    torn: int = 0  # times that readers had neither the old book nor the new one
    doubled: int = 0  # vectors made again that were there, passages that are there twice
    orphans: int = 0  # rows, points, files and folders that belong to no book

    @property
    def clean(self) -> bool:
        return not (self.lost or self.torn or self.doubled or self.orphans)

    def __str__(self) -> str:
        return (
            f"of {self.acknowledged:,} acknowledged {self.lost} lost, {self.torn} torn books, "
            f"{self.doubled} duplicates, {self.orphans} orphans"
        )


class Witness:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.tally = Tally()
        self._served = asyncio.run(self._read())
        self._kept: set[str] = bench.catalog().known_vectors(_EMBEDDER)
        self._notes = len(bench.acknowledged.read())
        self._embedded = len(bench.embedded.read())

    def look(self, *, finished: bool) -> None:
        book = {passage.id: passage for passage in read_book(self._bench.docs).passages}
        served = asyncio.run(self._read())
        old = served == self._served and not finished
        self.tally.torn += not (served == book or old)
        self._look_at_what_was_acknowledged()
        self._look_at_what_was_embedded(book)
        self._served = served

    def look_around(self) -> None:
        """Check that a finished ingest left nothing behind of the killed ones."""
        bench, tally, catalog = self._bench, self.tally, self._bench.catalog()
        current, passages = catalog.current(), catalog.passages().values()
        assert current is not None
        tally.orphans += len(catalog.known_vectors(_EMBEDDER) ^ {vector_key(p) for p in passages})
        tally.orphans += len({path.name for path in bench.home.iterdir()} - _AT_HOME)
        if bench.server is None:
            # The served one, and the one before it, which a question may still be reading.
            generations = [path.name for path in (bench.home / "generations").iterdir()]
            unfinished = [name for name in generations if len(name) != 32]
            tally.orphans += len(unfinished) + max(0, len(generations) - len(unfinished) - 2)
            tally.lost += current.name not in generations
        with sqlite3.connect(bench.home / "bythebook.db") as database:
            [verdict] = database.execute("PRAGMA integrity_check").fetchall()
        tally.torn += verdict != ("ok",)

    async def _read(self) -> dict[str, Passage]:
        """Open the book, ask a question and return what is served."""
        library, catalog = self._bench.library(), self._bench.catalog()
        if catalog.current() is None:
            return {}
        passages = catalog.passages()
        store = (await library.context()).index.store
        entries = await store.fetch(list(passages))
        fetched = {entry.passage.id: entry.passage for entry in entries}
        self.tally.doubled += len(entries) - len(fetched)
        self.tally.torn += fetched != passages
        self.tally.orphans += max(0, await store.count() - len(passages))
        hits = (await library.search(_QUESTION)).hits
        known = [hit for hit in hits if hit.passage == passages.get(hit.passage.id)]
        self.tally.torn += not hits or len(known) != len(hits)
        await library.close()
        return fetched

    def _look_at_what_was_acknowledged(self) -> None:
        """Check right after the kill: a later ingest may remove a vector of an earlier book."""
        catalog, notes = self._bench.catalog(), self._bench.acknowledged.read()
        new, self._notes = notes[self._notes :], len(notes)
        vectors = {note.removeprefix("vector ") for note in new if note.startswith("vector ")}
        swaps = [note.removeprefix("served ") for note in notes if note.startswith("served ")]
        self.tally.acknowledged += len(new)
        self.tally.lost += len(vectors - catalog.known_vectors(_EMBEDDER))
        current = catalog.current()
        # Killed between the swap and its acknowledgement, a newer one is served than was said.
        self.tally.lost += bool(swaps) and (current is None or current.name in swaps[:-1])

    def _look_at_what_was_embedded(self, book: dict[str, Passage]) -> None:
        embedded = self._bench.embedded.read()
        new, self._embedded = set(embedded[self._embedded :]), len(embedded)
        known = {repr(p.embedded_text) for p in book.values() if vector_key(p) in self._kept}
        self.tally.doubled += len(new & known)
        self._kept = self._bench.catalog().known_vectors(_EMBEDDER)


def manifest(bench: Bench) -> str:
    """Return a digest of everything stored for a book in catalog and index."""
    return asyncio.run(_manifest(bench))


async def _manifest(bench: Bench) -> str:
    catalog, digest = bench.catalog(), hashlib.sha256()
    current, passages = catalog.current(), catalog.passages()
    assert current is not None
    store = await bench.shelf().open(current.name)
    entries = {entry.passage.id: entry for entry in await store.fetch(list(passages))}
    vectors = catalog.vectors(_EMBEDDER, sorted(catalog.known_vectors(_EMBEDDER)))
    digest.update(current.fingerprint.encode() + current.vocabulary)
    for name in sorted(passages):
        entry = entries[name]
        assert entry.vector is not None
        digest.update(to_json(passages[name]).encode() + to_json(entry.passage).encode())
        digest.update(entry.vector.tobytes() + entry.unit_vectors.tobytes())
        digest.update(repr(sorted(entry.terms.items())).encode())
    for key in sorted(vectors):
        digest.update(key.encode() + vectors[key].vector.tobytes())
        digest.update(vectors[key].unit_vectors.tobytes())
    return digest.hexdigest()


def never_killed(bench: Bench, folder: Path) -> Bench:
    """Ingest the same book once, without a kill."""
    other = Bench(folder, bench.server)
    shutil.copytree(bench.docs, other.docs)
    assert other.run()
    return other
