"""A real server whose writer takes its time: python -m tests.serve.slow_server FOLDER PORT WORKERS

It writes a sentence every ``PAUSE_S``, a hundred in all, and notes in FOLDER/cancelled when it was
cancelled.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

from bythebook.book.site import read_book
from bythebook.library import Library
from bythebook.model import Evidence, Message, Question
from bythebook.providers.fake import FakeEmbedder, MemoryCatalog, MemoryShelf, MemoryThreads
from bythebook.retrieve.search import Index
from bythebook.serve.run import run
from bythebook.settings import Settings
from tests.samples import small_book

PAUSE_S = 0.05
SENTENCES = 100


class SlowWriter:
    name = "fake:slow"

    def __init__(self, index: Index, folder: Path) -> None:
        del index
        self._folder = folder

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        try:
            for _ in range(SENTENCES):
                yield "A kettle boils water at 100 degrees Celsius. [1]\n\n"
                await asyncio.sleep(PAUSE_S)
        except asyncio.CancelledError:
            with (self._folder / "cancelled").open("a") as notes:
                notes.write(f"{time.time()}\n")
            raise


def open_slow_book(settings: Settings) -> Library:
    library = Library(
        embedder=FakeEmbedder(),
        shelf=MemoryShelf(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
        make_writer=partial(SlowWriter, folder=settings.home),
    )
    asyncio.run(library.ingest(read_book(settings.home / "docs")))
    return library


def main(folder: Path, port: int, workers: int) -> None:
    small_book(folder / "docs")
    server = {"port": port, "workers": workers}
    settings = Settings.model_validate({"home": folder, "server": server})
    run(settings, open_book=open_slow_book)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
