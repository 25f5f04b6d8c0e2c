"""Load the history of a question's thread, and store its reply.

A database failure does not fail the answer: if the thread cannot be read or written, the reply
reports that it was not persisted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bythebook.conversations.summary import summarise
from bythebook.errors import DatabaseFailed, InvalidInput, NotFound
from bythebook.interfaces.conversations import METADATA_BYTES, Asker, before
from bythebook.types import Answer, Message, Question, Reply, Role

if TYPE_CHECKING:
    from bythebook.providers.sql.threads import SqlThreads

_log = logging.getLogger(__name__)

Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The thread of one question, with the history before it."""

    threads: SqlThreads | None  # None: nothing is stored
    thread_id: str | None
    owner: str | None
    history: tuple[Message, ...] = ()
    request: str | None = None  # stored with the message, so that a retry is stored only once
    readable: bool = True
    clock: Clock = now
    metadata: Mapping[str, object] = field(default_factory=dict)  # to be merged into the thread's

    async def keep(self, reply: Reply) -> Reply:
        """Store the question and the reply; return the reply, which reports whether this worked."""
        if self.threads is None or self.thread_id is None:
            return reply
        if not self.readable:
            return replace(reply, persisted=False)
        try:
            exchange = exchange_of(reply, now=self.clock(), request=self.request)
            await self.threads.append(
                self.thread_id,
                exchange,
                owner=self.owner,
                summarise=summarise,
                metadata=self.metadata,
            )
        except (DatabaseFailed, NotFound):
            _log.warning("an exchange was not stored in its thread")
            return replace(reply, persisted=False)
        return reply


async def open_conversation(
    threads: SqlThreads | None, question: Question, asker: Asker, clock: Clock = now
) -> Conversation:
    """Load the thread of a question. Raise NotFound if it belongs to another owner."""
    owner, request = asker.owner, asker.request
    if threads is None or question.thread is None:
        return Conversation(None, None, owner)
    try:
        thread = await threads.read(question.thread, owner=owner)
    except DatabaseFailed:
        _log.warning("a thread could not be read")
        return Conversation(threads, question.thread, owner, readable=False)
    history = before(thread.messages, request) if thread else ()
    new = question.thread_metadata
    if new and thread is not None:
        check_metadata({**thread.metadata, **new})
    return Conversation(
        threads, question.thread, owner, history, request, clock=clock, metadata=new
    )


def check_metadata(metadata: Mapping[str, object]) -> None:
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > METADATA_BYTES:
        raise InvalidInput(
            f"metadata: a conversation keeps at most {METADATA_BYTES} bytes of it.",
            hint="Send less metadata.",
        )


def exchange_of(reply: Reply, *, now: datetime, request: str | None = None) -> list[Message]:
    """Return the question and the answer as messages, each with its own time (or ``now``)."""
    answer = reply.outcome if isinstance(reply.outcome, Answer) else None
    confidence = reply.evidence.confidence.average if answer else 0.0
    content = answer.by_source.full_text if answer else reply.outcome.text
    citations = answer.citations if answer else ()
    asked_at, answered_at = reply.asked_at or now, reply.answered_at or now
    return [
        Message(Role.USER, reply.question.text, asked_at, request=request),
        Message(Role.ASSISTANT, content, answered_at, confidence, citations),
    ]
