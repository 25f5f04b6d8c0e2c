"""One call each, for scripts and notebooks: ``ask()`` and ``semantic_search()`` as S1 has them."""

from __future__ import annotations

import asyncio
from typing import Any

from bythebook.assemble import open_library
from bythebook.model import Question, Reply
from bythebook.serve.contracts import agent
from bythebook.settings import Settings, load_settings


def ask(
    text: str, *, top_k: int | None = None, settings: Settings | None = None, **flags: Any
) -> Reply:
    """Ask the book in ``home=…``: a reply whose outcome is an Answer or a Refusal."""
    settings = settings or load_settings(flags)
    question = question_for(text, settings, top_k=top_k)
    return asyncio.run(open_library(settings).reply(question))


def semantic_search(
    query: str, *, top_k: int | None = None, settings: Settings | None = None, **flags: Any
) -> agent.ResultSet:
    """S1's ResultSet for a query, without an answer."""
    settings = settings or load_settings(flags)
    question = question_for(query, settings, top_k=top_k)
    return agent.show_results(question, asyncio.run(open_library(settings).search(question)))


def question_for(
    text: str, settings: Settings, *, top_k: int | None = None, selection: str | None = None
) -> Question:
    """A question within the limits of the settings."""
    limits = settings.limits
    return Question(
        text=limits.check_question(text),
        selection=None if selection is None else limits.check_selection(selection),
        top_k=limits.check_top_k(top_k),
        floor=limits.floor,
    )
