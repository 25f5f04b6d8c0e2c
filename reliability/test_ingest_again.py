"""A book that is ingested again embeds only what changed and keeps nothing of the old one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.samples import SAMPLE_BOOK, read

from bythebook.book import Book
from bythebook.ingestion.indexer import IngestResult
from bythebook.ingestion.ingest import SourceManifest, find_manifest
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.text.passage_records import vector_key
from bythebook.types import Question
from reliability.rows import FULL, Row

if TYPE_CHECKING:
    from bythebook.interfaces.models import TextRole
    from bythebook.types import Vectors

_NAMES = ("a.md", "b.md", "part/c.md", "part/d.md")
_WORDS = ("kites", "kettles", "sails", "looms")

_pages = st.sampled_from(_NAMES)
_texts = st.tuples(st.sampled_from(_WORDS), st.integers(0, 3))
_changes = st.one_of(
    st.tuples(st.just("nothing")),
    st.tuples(st.just("edit"), _pages, _texts),
    st.tuples(st.just("rename"), _pages, _pages),
    st.tuples(st.just("delete"), _pages),
    st.tuples(st.just("move id"), _pages, _pages),
    st.tuples(st.just("touch"), _pages),
)


class Counting(FakeEmbedder):
    """Embedder that counts the texts of the book; queries do not count."""

    texts = 0

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        self.texts += len(texts) if role == "passage" else 0
        return await super().embed(texts, role=role)


class Author:
    """Writes a book in a folder and ingests it as the command does, using the source manifest if it
    can.
    """

    def __init__(self, folder: Path) -> None:
        self.docs, self.home = folder / "docs", folder / "home"
        self.docs.mkdir()
        self.embedder, self.catalog, self.shelf = (
            Counting(),
            MemoryCatalog(),
            MemoryGenerationStore(),
        )
        self.library = Book(
            embedder=self.embedder,
            store=self.shelf,
            catalog=self.catalog,
            threads=MemoryThreads(),
        )
        for number, name in enumerate(_NAMES[:3]):
            self.write(name, _WORDS[number], number, number)

    def write(self, name: str, word: str, number: int, page_id: int) -> None:
        path = self.docs / name
        path.parent.mkdir(exist_ok=True)
        says = "## {0} {1}\n\nAbout {0} there are {2} things.\n"
        parts = [says.format(word, part, part + number) for part in range(3)]
        path.write_text(f"---\nid: page-{page_id}\n---\n# On {word}\n\n" + "\n".join(parts))

    def change(self, kind: str, *given: Any) -> None:
        paths = [self.docs / name for name in given if isinstance(name, str)]
        there = all(path.exists() for path in paths)
        if kind == "edit":
            self.write(given[0], *given[1], page_id=_NAMES.index(given[0]))
        elif kind == "rename" and paths[0].exists() and not paths[1].exists():
            paths[1].parent.mkdir(exist_ok=True)
            paths[0].rename(paths[1])
        elif kind == "delete":
            paths[0].unlink(missing_ok=True)
        elif kind == "move id" and there:  # the page that had it gets the other's
            texts = [path.read_text().split("---\n", 2) for path in paths]
            for path, mine, other in zip(paths, texts, reversed(texts), strict=True):
                path.write_text("---\n".join((mine[0], other[1], mine[2])))
        elif kind == "touch" and there:
            paths[0].touch()

    async def ingest(self) -> tuple[IngestResult, bool]:
        """Ingest; also return whether pages were read."""
        receipt = find_manifest(self.home, "here")
        if (
            receipt
            and receipt.holds()
            and await self.library.ingesting().serves(receipt.generation)
        ):
            return receipt.again, False
        book = read(self.docs)
        result = await self.library.ingest(book, origin="here")
        SourceManifest(result.generation, "here", book.seen, result).keep(self.home)
        return result, True

    def texts_of(self, keys: set[str]) -> int:
        """Return how many texts are embedded for these: each passage and each of its units."""
        passages = {vector_key(passage): passage for passage in self.catalog.passages().values()}
        return sum(1 + len(passages[key].units) for key in keys)


class Count:
    """Counts over all examples."""

    def __init__(self) -> None:
        self.ingests = self.unread = self.too_many = self.stale = self.missing = 0

    async def check(self, author: Author, change: tuple[Any, ...]) -> None:
        known = author.catalog.known_vectors(author.embedder.name)
        texts, before = author.embedder.texts, author.catalog.current()
        author.change(*change)
        result, was_read = await author.ingest()
        book = {passage.id: passage for passage in read(author.docs).passages}
        new = {vector_key(passage) for passage in book.values()} - known
        self.ingests += 1
        self.unread += not was_read
        self.too_many += author.embedder.texts - texts - author.texts_of(new)
        self.too_many += result.embedded != len(new)
        current = author.catalog.current()
        assert current is not None
        store = await author.shelf.open(current.name)
        served = {entry.passage.id: entry.passage for entry in await store.fetch(list(book))}
        self.missing += sum(served.get(name) != passage for name, passage in book.items())
        self.stale += await store.count() - len(served) + len(author.catalog.passages()) - len(book)
        if book:
            hits = (await author.library.search(Question("How many things are there?"))).hits
            self.stale += sum(hit.passage.id not in book for hit in hits)
        if change == ("nothing",) and before is not None:
            self.too_many += was_read or current != before


@pytest.mark.row(
    "R5",
    "Ingest a book again: unchanged, edited, renamed, deleted, with moved ids",
    "0 repeated embeddings, 0 stale passages, 0 missing passages",
)
def test_what_is_ingested_again(row: Row) -> None:
    count = Count()

    @settings(
        max_examples=200 if FULL else 40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(_changes, min_size=1, max_size=6))
    def ingest_again_and_again(changes: list[tuple[Any, ...]]) -> None:
        folder = Path(tempfile.mkdtemp())
        try:
            asyncio.run(_all(folder, changes, count))
        finally:
            shutil.rmtree(folder)

    ingest_again_and_again()
    row.record(
        f"{200 if FULL else 40} histories of a book, {count.ingests} ingests",
        f"{count.too_many} embeddings too many, {count.stale} stale passages, {count.missing} "
        f"missing; {count.unread} ingests read no page, as nothing had changed",
        passed=not (count.too_many or count.stale or count.missing) and count.unread > 0,
    )


async def _all(folder: Path, changes: list[tuple[Any, ...]], count: Count) -> None:
    author = Author(folder)
    await author.ingest()
    for change in changes:
        await count.check(author, change)


_READ = """
import json, sys
from pathlib import Path
from bythebook.ingestion.read_book import read_book
from bythebook.text.passage_records import to_record
book = read_book(Path(sys.argv[1]))
print(json.dumps([to_record(passage) for passage in book.passages], sort_keys=True))
"""


def _copy(docs: Path, to: Path, *, ending: bytes) -> Path:
    for file in docs.rglob("*"):
        if file.is_file():
            copy = to / file.relative_to(docs)
            copy.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", ending)
            copy.write_bytes(content if file.suffix in (".md", ".mdx") else file.read_bytes())
    return to


def _records(docs: Path, seed: int) -> list[dict[str, object]]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(docs)], capture_output=True, check=True, env=environment
    )
    records: list[dict[str, object]] = json.loads(done.stdout)
    # Offsets into the source move with its line ends; nothing that is searched or shown does.
    return [{name: value for name, value in r.items() if name != "source"} for r in records]


@pytest.mark.smoke
@pytest.mark.row(
    "R24",
    "Compute the ids of one book in different processes and places",
    "0 differences",
)
def test_same_bytes_same_ids(row: Row, tmp_path: Path) -> None:
    prints = set()
    seeds = range(row.count(2, 10))
    for ending, name in ((b"\n", "unix"), (b"\r\n", "windows")):
        docs = _copy(SAMPLE_BOOK / "docs", tmp_path / name / "docs", ending=ending)
        for seed in seeds:
            records = _records(docs, seed)
            prints.add(hashlib.sha256(json.dumps(records).encode()).hexdigest())
    row.record(
        f"{len(records)} passages read in {2 * len(seeds)} processes, with other hash seeds, "
        "checkouts and line ends",
        f"{len(prints) - 1} differences",
        passed=len(prints) == 1,
    )
