"""A book you can ask: answers that stand in the book, each sentence tied to what says it.

The thirteen names below are the Python API. Nothing heavy is imported until one of them is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bythebook.assemble import open_library
    from bythebook.errors import BookError
    from bythebook.library import Library
    from bythebook.model import Answer, Question, Refusal, Reply
    from bythebook.quick import ask, respond, semantic_search
    from bythebook.serve.contracts.book import Query, Response
    from bythebook.settings import Settings

__version__ = "0.1.0"

_HOMES = {
    "Answer": "bythebook.model",
    "BookError": "bythebook.errors",
    "Library": "bythebook.library",
    "Query": "bythebook.serve.contracts.book",
    "Question": "bythebook.model",
    "Refusal": "bythebook.model",
    "Reply": "bythebook.model",
    "Response": "bythebook.serve.contracts.book",
    "Settings": "bythebook.settings",
    "ask": "bythebook.quick",
    "open_library": "bythebook.assemble",
    "respond": "bythebook.quick",
    "semantic_search": "bythebook.quick",
}

__all__ = [
    "Answer",
    "BookError",
    "Library",
    "Query",
    "Question",
    "Refusal",
    "Reply",
    "Response",
    "Settings",
    "ask",
    "open_library",
    "respond",
    "semantic_search",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bythebook' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
