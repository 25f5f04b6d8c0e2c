"""Synchronous functions for scripts and notebooks: the ask and query contracts in Python."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from bythebook.book import Book
from bythebook.config.settings import Settings, limits_of, load_settings
from bythebook.documents.query import Query, Response, read, show
from bythebook.documents.reply import ResultSet, show_results
from bythebook.errors import InvalidInput
from bythebook.types import FilterValue, Question, Reply
from bythebook.wiring import open_book

T = TypeVar("T")


def ask(
    text: str,
    *,
    selected_text: str | None = None,
    top_k: int | None = None,
    relevance_threshold: float | None = None,
    settings: Settings | None = None,
    **flags: Any,
) -> Reply:
    """Ask the book in ``home=…`` and return a reply whose outcome is an Answer or a Refusal."""
    settings = settings or load_settings(flags)
    question = question_for(
        text,
        settings,
        top_k=top_k,
        relevance_threshold=relevance_threshold,
        selection=selected_text,
    )
    return use_library(settings, lambda library: library.reply(question))


def semantic_search(
    query: str,
    *,
    top_k: int | None = None,
    relevance_threshold: float | None = None,
    filters: Mapping[str, FilterValue] | None = None,
    settings: Settings | None = None,
    **flags: Any,
) -> ResultSet:
    """Return the ask contract's ResultSet: no answer, and no results below the threshold."""
    settings = settings or load_settings(flags)
    question = question_for(
        query, settings, top_k=top_k, relevance_threshold=relevance_threshold, filters=filters
    )
    findings = use_library(settings, lambda library: library.search(question))
    return show_results(question, findings)


def respond(query: Query | str, *, settings: Settings | None = None, **flags: Any) -> Response:
    """Return the query contract's Response to a Query or its text, within that contract's limits.

    In ``bythebook.Query(text=…, timestamp=…)``, a timestamp without a time zone is read as UTC.
    """
    settings = settings or load_settings(flags)
    if not isinstance(query, Query):
        query = Query(text=limits_of("query").check_question(_words(query)))
    question = read(query)
    return show(use_library(settings, lambda library: library.reply(question)))


def use_library(settings: Settings, work: Callable[[Book], Awaitable[T]]) -> T:
    """Open the book, run the coroutine with it, and close it.

    If an event loop is already running, as in a notebook, this uses a separate thread.
    """

    async def whole() -> T:
        async with open_book(settings) as library:
            return await work(library)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(whole())
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, whole()).result()


def question_for(
    text: str,
    settings: Settings,
    *,
    top_k: int | None = None,
    relevance_threshold: float | None = None,
    selection: str | None = None,
    filters: Mapping[str, FilterValue] | None = None,
) -> Question:
    """Build a question, validated against the limits in the settings."""
    limits = settings.limits
    return Question(
        text=limits.check_question(_words(text)),
        selection=None if selection is None else limits.check_selection(selection),
        top_k=limits.check_top_k(top_k),
        min_score=limits.check_threshold(relevance_threshold),
        filters=filters or {},
    )


def _words(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput("The question is not a text.", hint="Ask in words.")
    return text
