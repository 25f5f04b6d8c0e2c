"""Cache of replies: replays the events of a repeated question without calling the writer.

Questions with a history are not cached, because their meaning depends on it. The key includes
the index generation and the writer, so changing either invalidates the cache.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace

from cachetools import TTLCache

from bythebook.answering.generation import AnswerContext
from bythebook.answering.pipeline import Event, respond
from bythebook.types import Message, Question, Reply, Timings, Usage, VectorState

_FRESH_S = 60 * 60


class AnswerCache:
    """LRU cache of replies with a time-to-live of one hour."""

    def __init__(self, most: int = 256, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._events: TTLCache[tuple[str, ...], tuple[Event, ...]] = TTLCache(
            most, ttl=_FRESH_S, timer=clock
        )

    async def respond(
        self, question: Question, context: AnswerContext, history: Sequence[Message] = ()
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of ``pipeline.respond``, from the cache where possible."""
        key, began = _key(question, context), time.perf_counter()
        cached = None if history else self._events.get(key)
        if cached is not None:
            for event in cached:
                yield _replayed(event, question, began) if isinstance(event, Reply) else event
            return
        events: list[Event] = []
        async with aclosing(respond(question, context, history)) as answering:
            async for event in answering:
                events.append(event)
                if isinstance(event, Reply) and not history and _is_lasting(event):
                    self._events[key] = tuple(events)
                yield event


def _key(question: Question, context: AnswerContext) -> tuple[str, ...]:
    """Return everything a reply depends on; the thread only determines where it is stored."""
    asked = json.dumps(asdict(replace(question, thread=None, thread_metadata={})), sort_keys=True)
    return asked, context.index.generation, context.writer.name, str(context.context_tokens)


def _is_lasting(reply: Reply) -> bool:
    """Return whether the reply is repeatable: no fallback was used and vectors were ready."""
    return reply.fallback is None and reply.vectors is VectorState.READY


def _replayed(reply: Reply, question: Question, began: float) -> Reply:
    timings = Timings(total_ms=(time.perf_counter() - began) * 1000)
    return replace(reply, question=question, timings=timings, usage=Usage(), cached=True)
