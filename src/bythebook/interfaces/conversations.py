"""What the stores of threads, of the query log and of feedback hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Literal

from bythebook.errors import NotFound
from bythebook.types import Message


class Anyone(Enum):
    """Owner value that matches every owner's threads: for the operator, never from a request."""

    ANYONE = "anyone"


ANYONE: Literal[Anyone.ANYONE] = Anyone.ANYONE


METADATA_BYTES = 4096  # of a thread, as JSON

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


@dataclass(frozen=True, slots=True)
class Thread:
    id: str
    messages: tuple[Message, ...]
    created_at: datetime
    updated_at: datetime
    topic_summary: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    owner: str | None = None  # API key that created it; None where keys are not required
    archived_at: datetime | None = None  # archived when idle; the next message restores it
    earlier: int = 0  # number of stored earlier messages that are not included


@dataclass(frozen=True, slots=True)
class Asker:
    """Client of a request, reduced to what the pipeline needs."""

    owner: str | None = None
    session: str | None = None  # of the contract envelope, a UUID: for the query log, not a thread
    address: str | None = None  # IP address of the client; only a part of it is stored
    query: str | None = None  # a UUID: id of the question in the query log and in feedback
    request: str | None = None  # digest that is equal for all repetitions of one request


def before(messages: Sequence[Message], request: str | None) -> tuple[Message, ...]:
    """Return the messages before the request's first message, or all if it has none."""
    requests = [message.request for message in messages]
    is_stored = request is not None and request in requests
    return tuple(messages[: requests.index(request)] if is_stored else messages)


def no_such_thread() -> NotFound:
    return NotFound("There is no such thread.", hint="Check its id, or begin a new one.")


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


@dataclass(frozen=True, slots=True)
class Feedback:
    """User's rating of an answer. The text is stored only with the user's consent."""

    id: str  # a UUID
    query: str | None  # the id of the question in the query log
    verdict: str  # up, down
    reason: str | None
    text: str | None
    given_at: datetime
