"""An ingest in a process of its own, to be killed: real catalog, real store, a quick embedder.

The process is forked from a server that has everything imported, so that all of its life is the
ingest itself, and 100 of them are a matter of seconds.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.book.site import read_book
from bythebook.library import Library
from bythebook.providers.fake import FakeEmbedder, MemoryThreads
from bythebook.providers.qdrant_edge import EdgeShelf
from bythebook.providers.qdrant_server import Server, ServerShelf
from bythebook.providers.sql import SqlCatalog, open_database

if TYPE_CHECKING:
    from bythebook.model import Vectors
    from bythebook.ports import Shelf, TextRole

_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Bench:
    """Where one book is ingested, again and again."""

    folder: Path
    server: str | None = None  # the address of a Qdrant server; else the embedded engine

    @property
    def docs(self) -> Path:
        return self.folder / "docs"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> Path:
        return self.folder / "embedded"

    def catalog(self) -> SqlCatalog:
        return SqlCatalog(open_database(None, self.home), self.home)

    def shelf(self) -> Shelf:
        if self.server is None:
            return EdgeShelf(self.home / "generations", dimension=64)
        return ServerShelf(Server((self.server,), timeout_s=20), self.folder.name, dimension=64)

    def library(self, *, dies_at: int | None = None) -> Library:
        """``dies_at``: the process kills itself around the n-th call of a port."""
        countdown = Countdown(dies_at)
        return Library(
            embedder=countdown.around(_Logging(self.log)),
            shelf=countdown.around(self.shelf()),
            catalog=countdown.around(self.catalog()),
            threads=MemoryThreads(),
        )

    def start(self, *, dies_at: int | None = None) -> BaseProcess:
        process = _forkserver.Process(target=_ingest, args=(self, dies_at))
        process.start()
        return process

    def run(self, *, dies_at: int | None = None) -> bool:
        """Whether the ingest came to its end."""
        process = self.start(dies_at=dies_at)
        process.join(60)
        assert process.exitcode in (0, -signal.SIGKILL)
        return process.exitcode == 0


def _ingest(bench: Bench, dies_at: int | None) -> None:
    library = bench.library(dies_at=dies_at)
    asyncio.run(library.ingest(read_book(bench.docs)))
    os._exit(0)


class _Logging(FakeEmbedder):
    """Writes down what it embeds before anyone gets the vectors."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        with self._log.open("a") as log:
            log.writelines(f"{text!r}\n" for text in texts)
        return await super().embed(texts, role=role)


class Countdown:
    """Every call of a port counts twice: just before it, and just after it."""

    def __init__(self, left: int | None) -> None:
        self._left = left

    def tick(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, target: Any) -> Any:
        countdown = self

        class Around:
            def __getattr__(self, name: str) -> Any:
                value = getattr(target, name)
                return countdown.guard(value) if callable(value) else value

        return Around()

    def guard(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.tick()
            result = method(*args, **kwargs)
            self.tick()
            return result

        @wraps(method)
        async def call_and_wait(*args: Any, **kwargs: Any) -> Any:
            self.tick()
            result = await method(*args, **kwargs)
            self.tick()
            return result

        return call_and_wait if inspect.iscoroutinefunction(method) else call


def write_edition(docs: Path, number: int) -> None:
    """Each edition of the book edits some pages, drops one and adds another."""
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
