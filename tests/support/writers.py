"""Writers that stand in for a language model, and the small book with one of them at work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bythebook.book import Book
from bythebook.errors import WriterFailed
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.models import DraftPiece
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.types import Evidence, Message, Question
from bythebook.wiring import MakeWriter, extractive
from tests.support.samples import small_book


class Model:
    """Writes what it is given, and fails where it is given an error."""

    name = "fake:model"

    def __init__(self, *pieces: DraftPiece | WriterFailed) -> None:
        self.pieces = pieces
        self.closed = False
        self.evidence: Evidence | None = None

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[DraftPiece]:
        self.evidence = evidence
        try:
            for piece in self.pieces:
                if isinstance(piece, WriterFailed):
                    raise piece
                yield piece
        finally:
            self.closed = True


async def small_library(folder: Path, model: Model, *, fallback: bool = True) -> Book:
    """The small book on fakes, with a model to write."""
    return await library_with(small_book(folder), lambda _: model, fallback=fallback)


async def library_with(folder: Path, make_writer: MakeWriter, *, fallback: bool = True) -> Book:
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
        make_writer=make_writer,
        make_fallback=extractive if fallback else None,
    )
    await library.ingest(read_book(folder))
    return library
