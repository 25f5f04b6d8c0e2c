"""A question of a conversation in, what was said before out; its reply in, kept or not, out.

The answer does not fail with the notebook: a thread that cannot be read or written is said so in
the reply.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bythebook.errors import DatabaseFailed, NotFound
from bythebook.model import Answer, Asker, Message, Question, Reply, Role
from bythebook.ports import ThreadStore
from bythebook.talk.thread import before

_log = logging.getLogger(__name__)

Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One question's place in its thread."""

    threads: ThreadStore
    thread_id: str | None  # None: nothing is to be kept
    owner: str | None
    history: tuple[Message, ...] = ()
    request: str | None = None  # kept with it: repeated, it is kept once
    readable: bool = True
    clock: Clock = now

    async def keep(self, reply: Reply) -> Reply:
        """The reply, which says whether it and its question are kept."""
        if self.thread_id is None:
            return reply
        if not self.readable:
            return replace(reply, persisted=False)
        try:
            said = exchange_of(reply, now=self.clock(), request=self.request)
            await self.threads.append(self.thread_id, said, owner=self.owner)
        except (DatabaseFailed, NotFound):
            _log.warning("a message of a conversation could not be kept")
            return replace(reply, persisted=False)
        return reply


async def open_conversation(
    threads: ThreadStore, question: Question, asker: Asker, clock: Clock = now
) -> Conversation:
    """NotFound: the thread is another's."""
    owner, request = asker.owner, asker.request
    if question.thread is None:
        return Conversation(threads, None, owner)
    try:
        thread = await threads.read(question.thread, owner=owner)
    except DatabaseFailed:
        _log.warning("a conversation could not be read")
        return Conversation(threads, question.thread, owner, readable=False)
    history = before(thread.messages, request) if thread else ()
    return Conversation(threads, question.thread, owner, history, request, clock=clock)


def exchange_of(reply: Reply, *, now: datetime, request: str | None = None) -> list[Message]:
    """Return the question and the answer as messages, each with its own time (or ``now``)."""
    answer = reply.outcome if isinstance(reply.outcome, Answer) else None
    confidence = reply.evidence.confidence.average if answer else 0.0
    content = answer.full_text if answer else reply.outcome.text
    citations = answer.citations if answer else ()
    asked_at, answered_at = reply.asked_at or now, reply.answered_at or now
    return [
        Message(Role.USER, reply.question.text, asked_at, request=request),
        Message(Role.ASSISTANT, content, answered_at, confidence, citations),
    ]
