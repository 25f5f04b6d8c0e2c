"""Interfaces of threads, the query log and feedback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Literal, Protocol

from bythebook.errors import NotFound
from bythebook.types import Message, Thread


class Anyone(Enum):
    """Owner value that matches every owner's threads: for the operator, never from a request."""

    ANYONE = "anyone"


ANYONE: Literal[Anyone.ANYONE] = Anyone.ANYONE


Owner = str | None | Literal[Anyone.ANYONE]
Summarise = Callable[[Sequence[Message]], str | None]


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """Summary of a thread for listings."""

    id: str
    created_at: datetime
    updated_at: datetime
    messages: int
    topic_summary: str | None = None
    owner: str | None = None
    archived_at: datetime | None = None


class ThreadStore(Protocol):
    """Store of conversations that users asked to keep, each bound to its owner."""

    async def read(self, thread_id: str, *, owner: Owner, whole: bool = False) -> Thread | None:
        """Return the thread with its last 50 messages (all if ``whole``), or None if unknown.

        Raise NotFound for another owner's thread. Clients cannot distinguish the two cases.
        """
        ...

    async def append(
        self,
        thread_id: str,
        messages: Sequence[Message],
        *,
        owner: str | None,
        summarise: Summarise | None = None,
    ) -> Thread:
        """Append messages atomically and in sequence, creating or resuming the thread.

        Raise NotFound for another owner's thread. If the first message's ``request`` is already
        in the thread, the messages replace those of that earlier attempt. ``summarise`` computes
        the new topic summary from the live messages; without it the summary stays.
        """
        ...

    async def list(
        self, *, owner: Owner, limit: int = 20, offset: int = 0
    ) -> Sequence[ThreadSummary]:
        """Return one page of summaries, most recently updated first."""
        ...

    async def delete(self, thread_id: str, *, owner: Owner) -> bool:
        """Delete the thread and return whether it existed."""
        ...

    async def close(self) -> None:
        """Close the database connection."""
        ...


def before(messages: Sequence[Message], request: str | None) -> tuple[Message, ...]:
    """Return the messages before the request's first message, or all if it has none."""
    requests = [message.request for message in messages]
    is_stored = request is not None and request in requests
    return tuple(messages[: requests.index(request)] if is_stored else messages)


def no_such_thread() -> NotFound:
    return NotFound("There is no such thread.", hint="Check its id, or begin a new one.")


class ThreadArchive(Protocol):
    """Archiving and deletion of old threads. Each call is one short transaction."""

    async def claim(self, chore: str, *, now: datetime, every: timedelta) -> bool:
        """Return whether this worker runs the task now: one of all workers, once in ``every``."""
        ...

    async def archive(
        self, *, before: datetime, now: datetime, limit: int, only: str | None = None
    ) -> int:
        """Archive up to ``limit`` threads with no message since ``before``; return the count."""
        ...

    async def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` threads with no message since ``before``; return the count."""
        ...


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """Query log row (contract envelope): never holds answer, passages or selected text."""

    id: str  # a UUID
    session: str | None  # a UUID
    text: str
    selection_length: int | None
    mode: str  # standard_rag, selected_text_only
    status: str  # success, refused, error
    refusal: str | None
    passages: int
    best_score: float | None
    total_ms: int
    asked_at: datetime
    network: str | None = None  # of the client: its IP address without the last part


@dataclass(frozen=True, slots=True)
class DayTally:
    """Outcome counts of the questions of one day (UTC)."""

    day: date
    answered: int = 0
    refused: int = 0
    failed: int = 0


SCORE_BINS = 20  # of equal width, from 0 to 1


@dataclass(frozen=True, slots=True)
class Tally:
    """Aggregated figures of the query log, without any question text."""

    days: tuple[DayTally, ...] = ()  # only days with questions, oldest first
    scores: tuple[int, ...] = (0,) * SCORE_BINS  # histogram of questions by best passage score
    times_ms: Mapping[int, int] = field(default_factory=dict)  # milliseconds -> questions
    refusals: Mapping[str, int] = field(default_factory=dict)  # refusal reason -> questions


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Question to the whole book that was refused or answered with low scores."""

    text: str
    refused: int
    unsure: int  # answered from passages with low scores
    last_at: datetime

    @property
    def count(self) -> int:
        return self.refused + self.unsure


class QueryLog(Protocol):
    """Log of questions and outcomes for the author. A failing log must not fail an answer."""

    async def record(self, queries: Sequence[LoggedQuery]) -> None:
        """Write all rows in one transaction; rows whose id exists are left unchanged."""
        ...

    async def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` questions asked before ``before``; return the count."""
        ...

    async def tally(self, *, since: datetime) -> Tally:
        """Return the aggregated figures of the questions since ``since``."""
        ...

    async def unanswered(
        self, *, since: datetime, below: float, limit: int
    ) -> Sequence[Unanswered]:
        """Return questions refused since ``since``, or answered with all scores under ``below``.

        Identical texts count as one question; most frequent first, then most recent. Questions
        stored without text and questions about a selection are left out.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Feedback:
    """User's rating of an answer. The text is stored only with the user's consent."""

    id: str  # a UUID
    query: str | None  # the id of the question in the query log
    verdict: str  # up, down
    reason: str | None
    text: str | None
    given_at: datetime


class FeedbackStore(Protocol):
    """Store of user feedback for the author, retained as long as the query log."""

    async def add(self, feedback: Feedback) -> None:
        """Store feedback, replacing an earlier one with the same id: users may change it."""
        ...

    async def recent(self, *, since: datetime, limit: int) -> list[Feedback]:
        """Return the feedback given since ``since``, newest first."""
        ...

    async def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` given before ``before``; return the count."""
        ...

    async def close(self) -> None: ...
