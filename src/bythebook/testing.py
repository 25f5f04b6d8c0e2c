"""Fakes of every provider and a small open book, for tests of programs that use By the Book.

.. code-block:: python

    async with await fake_book({"tea.md": "Green tea is steeped for two minutes."}) as book:
        reply = await book.reply(Question("How long is green tea steeped?"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bythebook.book import Book
from bythebook.ingestion.read_book import read_book
from bythebook.providers.testing import (
    FakeEmbedder,
    FakeReader,
    MemoryCatalog,
    MemoryFeedback,
    MemoryGenerationStore,
    MemoryQueryLog,
    MemoryThreads,
    ScriptedWriter,
)

if TYPE_CHECKING:
    from bythebook.ingestion.read_book import ParsedBook

__all__ = [
    "PAGES",
    "FakeEmbedder",
    "FakeReader",
    "MemoryCatalog",
    "MemoryFeedback",
    "MemoryGenerationStore",
    "MemoryQueryLog",
    "MemoryThreads",
    "ScriptedWriter",
    "fake_book",
]

PAGES = {
    "intro.md": """# Welcome

This little book is about kites and kettles.

## Kites

A kite flies because the wind pushes it upwards. The string keeps it from drifting away.
Most kites need a wind of at least 12 kilometres per hour.

## Kettles

A kettle boils water at 100 degrees Celsius. It switches itself off by means of a bimetal strip.
"""
}


async def fake_book(pages: Mapping[str, str] = PAGES, **parts: Any) -> Book:
    """Open a book of these Markdown pages (path to text) in memory, without a model.

    ``parts`` replace or add parts of the ``Book``.
    """
    fakes: dict[str, Any] = {
        "embedder": FakeEmbedder(),
        "store": MemoryGenerationStore(),
        "catalog": MemoryCatalog(),
        "threads": MemoryThreads(),
    }
    book = Book(**{**fakes, **parts})
    await book.ingest(await asyncio.to_thread(_parse, pages))
    return book


def _parse(pages: Mapping[str, str]) -> ParsedBook:
    with TemporaryDirectory() as folder:
        for name, text in pages.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        return read_book(Path(folder))
