"""One call each, for scripts and notebooks: S1's ``ask``, ``semantic_search``; S0's ``respond``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from bythebook.assemble import open_library
from bythebook.errors import InvalidInput
from bythebook.library import Library
from bythebook.model import FilterValue, Question, Reply
from bythebook.serve.contracts import agent, book
from bythebook.settings import Settings, limits_of, load_settings

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
    """Ask the book in ``home=…``: a reply whose outcome is an Answer or a Refusal."""
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
) -> agent.ResultSet:
    """S1's ResultSet for a query, without an answer and without results below the threshold."""
    settings = settings or load_settings(flags)
    question = question_for(
        query, settings, top_k=top_k, relevance_threshold=relevance_threshold, filters=filters
    )
    findings = use_library(settings, lambda library: library.search(question))
    return agent.show_results(question, findings)


def respond(
    query: book.Query | str, *, settings: Settings | None = None, **flags: Any
) -> book.Response:
    """S0's Response to a Query, or to its text, within S0's own limits.

    ``bythebook.Query(text=…, timestamp=…)``: a time without a zone is taken as UTC.
    """
    settings = settings or load_settings(flags)
    if not isinstance(query, book.Query):
        query = book.Query(text=limits_of("book").check_question(_words(query)))
    question = book.read(query)
    return book.show(use_library(settings, lambda library: library.reply(question)))


def use_library(settings: Settings, work: Callable[[Library], Awaitable[T]]) -> T:
    """Open the library, wait for the work with it, and close it.

    Where a loop already runs, as in a notebook, this happens on a thread of its own.
    """

    async def whole() -> T:
        async with open_library(settings) as library:
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
    """A question within the limits of the settings."""
    limits = settings.limits
    return Question(
        text=limits.check_question(_words(text)),
        selection=None if selection is None else limits.check_selection(selection),
        top_k=limits.check_top_k(top_k),
        floor=limits.check_threshold(relevance_threshold),
        filters=filters or {},
    )


def _words(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput("The question is not a text.", cure="Ask in words.")
    return text
