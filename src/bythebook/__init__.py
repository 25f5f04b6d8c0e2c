"""Retrieval-augmented question answering over a book, with a citation for each sentence.

The names below are the Python API. Heavy modules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bythebook.api import ask, ingest, open_book, respond, search, semantic_search
    from bythebook.book import Book
    from bythebook.config.settings import Settings
    from bythebook.contracts.query import Query, Response
    from bythebook.errors import BookError
    from bythebook.ingestion.indexer import IngestResult
    from bythebook.refusals import Refusal
    from bythebook.types import Answer, Question, Reply

__version__ = "0.1.0"

_HOMES = {
    "Answer": "bythebook.types",
    "BookError": "bythebook.errors",
    "IngestResult": "bythebook.ingestion.indexer",
    "Book": "bythebook.book",
    "Query": "bythebook.contracts.query",
    "Question": "bythebook.types",
    "Refusal": "bythebook.refusals",
    "Reply": "bythebook.types",
    "Response": "bythebook.contracts.query",
    "Settings": "bythebook.config.settings",
    "ask": "bythebook.api",
    "ingest": "bythebook.api",
    "open_book": "bythebook.api",
    "respond": "bythebook.api",
    "search": "bythebook.api",
    "semantic_search": "bythebook.api",
}

__all__ = [
    "Answer",
    "Book",
    "BookError",
    "IngestResult",
    "Query",
    "Question",
    "Refusal",
    "Reply",
    "Response",
    "Settings",
    "ask",
    "ingest",
    "open_book",
    "respond",
    "search",
    "semantic_search",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bythebook' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
