"""A question that was answered before in, the same events out, without asking a writer again.

Only what stands by itself is remembered: a question with a history means something else each
time. A new generation of the book, or another writer, knows none of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace

from bythebook.answer.respond import Event, respond
from bythebook.answer.write import Desk
from bythebook.model import Message, Question, Reply, Timings, Usage, VectorState
from bythebook.recent import Recent

_FRESH_S = 60 * 60


class KnownReplies:
    """The latest replies, for an hour each."""

    def __init__(self, most: int = 256, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: Recent[tuple[str, ...], tuple[Event, ...]] = Recent(
            most, fresh_s=_FRESH_S, clock=clock
        )

    async def respond(
        self, question: Question, desk: Desk, history: Sequence[Message] = ()
    ) -> AsyncGenerator[Event, None]:
        """As ``answer.respond``, whose events come again where the question does."""
        key, began = _key(question, desk), time.perf_counter()
        known = None if history else self._known.get(key)
        if known is not None:
            for event in known:
                yield _again(event, question, began) if isinstance(event, Reply) else event
            return
        events: list[Event] = []
        async with aclosing(respond(question, desk, history)) as journey:
            async for event in journey:
                events.append(event)
                if isinstance(event, Reply) and not history and _is_lasting(event):
                    self._known.put(key, tuple(events))
                yield event


def _key(question: Question, desk: Desk) -> tuple[str, ...]:
    """All that a reply depends on. The thread is not: it only says where to write it down."""
    asked = json.dumps(asdict(replace(question, thread=None)), sort_keys=True)
    return asked, desk.index.generation, desk.writer.name, str(desk.context_tokens)


def _is_lasting(reply: Reply) -> bool:
    """Whether asking again later would bring the same: no provider stood in for another."""
    return reply.fallback is None and reply.vectors is VectorState.READY


def _again(reply: Reply, question: Question, began: float) -> Reply:
    timings = Timings(total_ms=(time.perf_counter() - began) * 1000)
    return replace(reply, question=question, timings=timings, usage=Usage(), cached=True)
