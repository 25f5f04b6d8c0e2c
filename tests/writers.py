"""Writers that stand in for a language model, and the small book with one of them at work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bythebook.book.site import read_book
from bythebook.errors import WriterFailed
from bythebook.library import Library, MakeWriter, extractive
from bythebook.model import Evidence, Message, Question
from bythebook.ports import Piece
from bythebook.providers.fake import FakeEmbedder, MemoryCatalog, MemoryShelf, MemoryThreads
from tests.samples import small_book


class Model:
    """Writes what it is given, and fails where it is given an error."""

    name = "fake:model"

    def __init__(self, *pieces: Piece | WriterFailed) -> None:
        self.pieces = pieces
        self.closed = False
        self.evidence: Evidence | None = None

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[Piece]:
        self.evidence = evidence
        try:
            for piece in self.pieces:
                if isinstance(piece, WriterFailed):
                    raise piece
                yield piece
        finally:
            self.closed = True


async def small_library(folder: Path, model: Model, *, fallback: bool = True) -> Library:
    """The small book on fakes, with a model to write."""
    return await library_with(small_book(folder), lambda _: model, fallback=fallback)


async def library_with(folder: Path, make_writer: MakeWriter, *, fallback: bool = True) -> Library:
    library = Library(
        embedder=FakeEmbedder(),
        shelf=MemoryShelf(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
        make_writer=make_writer,
        make_fallback=extractive if fallback else None,
    )
    await library.ingest(read_book(folder))
    return library
