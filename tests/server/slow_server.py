"""A real server whose writer takes its time: python -m tests.server.slow_server FOLDER PORT WORKERS

It writes a sentence every ``PAUSE_S``, a hundred in all. A question that ends as ``SILENT`` says is
answered with one, and silence after it; one that ends as ``BRIEF`` says, with one alone; one that
ends as ``LONG`` says, with more than the buffers of a connection hold. In FOLDER/cancelled it notes
when it was cancelled, and how many tasks there were then.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.ingestion.read_book import read_book
from bythebook.retrieval.search import SearchContext
from bythebook.server.runner import run
from bythebook.types import Evidence, Message, Question
from tests.server.conftest import fakes
from tests.support.samples import small_book

PAUSE_S = 0.05
SENTENCES = 100
SILENT, BRIEF, LONG = "??", "?!", "!?"  # marks, since words would change what is found
LONG_SENTENCES = 300


class SlowWriter:
    name = "fake:slow"

    def __init__(self, index: SearchContext, folder: Path) -> None:
        del index
        self._folder = folder

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        try:
            for _ in range(_sentences(question)):
                yield "A kettle boils water at 100 degrees Celsius. [1]\n\n"
                await asyncio.sleep(_pause_s(question))
        except asyncio.CancelledError:
            with (self._folder / "cancelled").open("a") as notes:
                notes.write(f"{time.time()} {len(asyncio.all_tasks())}\n")
            raise


def _sentences(question: Question) -> int:
    if question.text.endswith(BRIEF):
        return 1
    return LONG_SENTENCES if question.text.endswith(LONG) else SENTENCES


def _pause_s(question: Question) -> float:
    if question.text.endswith(BRIEF):
        return 0.0
    return 60.0 if question.text.endswith(SILENT) else PAUSE_S


def open_slow_book(settings: Settings) -> Book:
    library = Book(**fakes(), make_writer=partial(SlowWriter, folder=settings.home))
    asyncio.run(library.ingest(read_book(settings.home / "docs")))
    return library


def main(folder: Path, port: int, workers: int) -> None:
    small_book(folder / "docs")
    server = {"port": port, "workers": workers}
    settings = Settings.model_validate({"home": folder, "server": server})
    run(settings, open_book=open_slow_book)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
