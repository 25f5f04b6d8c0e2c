"""Run work in a separate process and kill it, at a random moment or at a named point.

The process is forked from a server that has imported everything, so a hundred runs take seconds.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from bythebook.book import Book
from bythebook.ingestion.ingest import SourceManifest
from bythebook.ingestion.read_book import read_book
from bythebook.providers.flat_index import FlatGenerationStore
from bythebook.providers.qdrant.nodes import Server
from bythebook.providers.qdrant.server import ServerGenerationStore
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.providers.testing import FakeEmbedder, MemoryThreads

if TYPE_CHECKING:
    from bythebook.interfaces.models import TextRole
    from bythebook.interfaces.store import Generation, GenerationStore, StoredVectors
    from bythebook.types import Passage, Vectors

ORIGIN = "the bench"

_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Point:
    """The moment just before or just after one call of a function."""

    qualname: str
    file: str
    after: bool = False
    turn: int = 1  # which call of the function in this process

    def __str__(self) -> str:
        turn = f", call {self.turn}" if self.turn > 1 else ""
        return f"{'after' if self.after else 'before'} {self.qualname}{turn}"

    def arm(self) -> None:
        """Let this process die at the point.

        A profiler watches the calls, so no code of the product is replaced.
        """
        event, left = "return" if self.after else "call", self.turn

        def watch(frame: FrameType, what: str, _: object) -> None:
            nonlocal left
            code = frame.f_code
            if what != event or code.co_qualname != self.qualname or code.co_filename != self.file:
                return
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        threading.setprofile(watch)
        sys.setprofile(watch)


def before(function: Callable[..., Any], *, turn: int = 1) -> Point:
    code = inspect.unwrap(function).__code__
    return Point(code.co_qualname, code.co_filename, turn=turn)


def after(function: Callable[..., Any], *, turn: int = 1) -> Point:
    return replace(before(function, turn=turn), after=True)


def started(work: Callable[..., None], *given: Any) -> BaseProcess:
    process = _forkserver.Process(target=_work, args=(work, given))
    process.start()
    return process


def _work(work: Callable[..., None], given: tuple[Any, ...]) -> None:
    work(*given)
    os._exit(0)  # with no farewell that a kill would not have, either


def survived(process: BaseProcess) -> bool:
    """Return whether the work finished. It may be killed but must not fail."""
    process.join(120)
    assert process.exitcode in (0, -signal.SIGKILL), f"ended with {process.exitcode}"
    return process.exitcode == 0


@dataclass(frozen=True)
class Bench:
    """Folder in which one book is ingested repeatedly."""

    folder: Path
    server: str | None = None  # the address of a Qdrant server; else files

    @property
    def docs(self) -> Path:
        return self.folder / "docs"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def embedded(self) -> Notes:
        """The embedded texts, one per line."""
        return Notes(self.folder / "embedded")

    @property
    def acknowledged(self) -> Notes:
        """What the catalog acknowledged: keys of vectors and served generations."""
        return Notes(self.folder / "acknowledged")

    @property
    def begun(self) -> Notes:
        """One line per ingest that has started to read the book."""
        return Notes(self.folder / "begun")

    def catalog(self) -> SqlCatalog:
        return SqlCatalog(open_database(None, self.home), self.home)

    def shelf(self) -> GenerationStore:
        if self.server is None:
            return FlatGenerationStore(self.home / "generations", dimension=64)
        return ServerGenerationStore(
            Server((self.server,), timeout_s=20), self.folder.name, dimension=64
        )

    def library(self) -> Book:
        catalog = Acknowledging(open_database(None, self.home), self.home)
        catalog.notes = self.acknowledged
        embedder = _Noting()
        embedder.notes = self.embedded
        threads = MemoryThreads()
        return Book(embedder=embedder, store=self.shelf(), catalog=catalog, threads=threads)

    def ingest(self, point: Point | None = None) -> None:
        """Ingest as the command does, including the source manifest."""
        if point is not None:
            point.arm()
        self.begun.add(["once more"])
        library, book = self.library(), read_book(self.docs)
        result = asyncio.run(library.ingest(book, origin=ORIGIN))
        SourceManifest(result.generation, ORIGIN, book.seen, result).keep(self.home)

    def start(self) -> BaseProcess:
        """Start an ingest and return its process once everything is imported."""
        before, process = len(self.begun.read()), started(self.ingest)
        while len(self.begun.read()) == before and process.is_alive():
            time.sleep(0.002)
        return process

    def run(self, point: Point | None = None) -> bool:
        """Return whether the ingest finished."""
        return survived(started(self.ingest, point))


@dataclass(frozen=True)
class Notes:
    """Lines appended to a file; the kernel keeps them when the writer is killed."""

    path: Path

    def add(self, lines: Sequence[str]) -> None:
        with self.path.open("a", encoding="utf-8") as notes:
            notes.write("".join(f"{line}\n" for line in lines))

    def read(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []


class _Noting(FakeEmbedder):
    """Embedder that records the texts before it returns their vectors."""

    notes: Notes

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        if role == "passage":
            self.notes.add([repr(text) for text in texts])
        return await super().embed(texts, role=role)


class Acknowledging(SqlCatalog):
    """Catalog that records what it has acknowledged."""

    notes: Notes

    def add_vectors(self, embedder: str, vectors: Sequence[StoredVectors]) -> None:
        super().add_vectors(embedder, vectors)
        self.notes.add([f"vector {stored.key}" for stored in vectors])

    def commit(self, passages: Sequence[Passage], generation: Generation, **more: Any) -> None:
        super().commit(passages, generation, **more)
        self.notes.add([f"served {generation.name}"])


def write_edition(docs: Path, number: int) -> None:
    """Write an edition of the book: some pages edited, one dropped, one added."""
    docs.mkdir(exist_ok=True)
    wanted = range(number, number + 14)
    for path in docs.glob("*.md"):
        if int(path.stem.removeprefix("page")) not in wanted:
            path.unlink()
    for page in wanted:
        path = docs / f"page{page}.md"
        if not path.exists() or page % 4 == number % 4:
            path.write_text(_page(page, number), "utf-8")


def _page(page: int, edition: int) -> str:
    words = random.Random(page).choices(
        ["oak", "elm", "ash", "fir", "yew", "box", "bay", "fig", "ivy", "nut"], k=40
    )
    parts = [f"# Page {page}\n\nPage {page} in edition {edition}: {' '.join(words[:10])}."]
    parts += [
        f"## Part {page}.{part}\n\nPart {part} of page {page} says {' '.join(words[part:][:9])} "
        f"in edition {edition if part == 1 else 0}. It ends here."
        for part in range(4)
    ]
    return "\n\n".join(parts) + "\n"
