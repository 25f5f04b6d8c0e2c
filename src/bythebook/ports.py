"""The edges of the house: what the stages ask of the world, each answered by ``providers/``.

A port is one to six methods, passed in and never looked up. The ports that a question crosses
are asynchronous and never block the event loop (a provider that computes does so on a worker
thread); the catalog is a batch job's ledger and is synchronous. Each port has one conformance
suite in ``tests/ports/`` that every provider must pass.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from bythebook.model import (
    Evidence,
    FilterValue,
    Hit,
    Message,
    Passage,
    Question,
    Role,
    Thread,
    Usage,
    VectorState,
)

if TYPE_CHECKING:
    from bythebook.model import Vectors

TextRole = Literal["query", "passage"]
Filters = Mapping[str, FilterValue]


class Embedder(Protocol):
    """Texts to vectors of unit length. Text beyond the limit is windowed, never cut off."""

    @property
    def name(self) -> str: ...  # "provider:model", stored with the index

    @property
    def dimension(self) -> int: ...

    @property
    def limit(self) -> int: ...  # tokens that one window holds

    async def prepare(self) -> None:
        """Load what the first text would have to wait for; may well do nothing."""
        ...

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage with everything by which it can be found."""

    passage: Passage
    vector: Vectors | None  # (dimension,); None while the book's vectors are pending
    unit_vectors: Vectors  # (units, dimension)
    terms: Mapping[int, float]  # term number -> BM25 weight without IDF


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that a search brought up, and everything it is weighed by."""

    passage_id: str
    content_hash: str
    cosine: float  # with the passage; 0 where the words alone were asked
    unit_cosine: float  # with the nearest of its units
    terms: Mapping[int, float]  # as in Entry

    @classmethod
    def of(cls, entry: Entry, vector: Vectors | None) -> Candidate:
        if vector is None or entry.vector is None:
            passage = entry.passage
            return cls(passage.id, passage.content_hash, 0.0, 0.0, entry.terms)
        cosine = float(entry.vector @ vector)
        return cls(
            passage_id=entry.passage.id,
            content_hash=entry.passage.content_hash,
            cosine=cosine,
            unit_cosine=max((entry.unit_vectors @ vector).tolist(), default=cosine),
            terms=entry.terms,
        )


class PassageStore(Protocol):
    """One generation of a book, opened for reading: it never changes under a question."""

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        """The ``limit`` best in each of three ways, together, each passage once, in any order.

        By meaning: the cosine with the passage, and with the best of its units. By word: the sum
        of the terms' BM25 weights times their IDF. Without a vector, by word alone.
        """
        ...

    async def fetch(self, passage_ids: Sequence[str]) -> list[Entry]:
        """The entries with these ids, in this order; unknown ids are left out."""
        ...

    async def count(self) -> int: ...

    async def close(self) -> None: ...


class Shelf(Protocol):
    """The generations of a book, side by side. Readers keep the one they opened."""

    async def publish(self, generation: str, entries: Iterable[Entry]) -> int:
        """Write a whole generation durably; return how many passages it holds."""
        ...

    async def open(self, generation: str) -> PassageStore: ...

    async def discard(self, *, keep: Sequence[str]) -> None:
        """Remove every generation but these, of which the first is the one served."""
        ...

    async def close(self) -> None:
        """Let go of connections; what it opened cannot be asked any more."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """Passages that a writer looked up by itself: they join the evidence, numbered on from it."""

    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is told: the rules, and then who said what, in order."""

    system: str
    turns: tuple[tuple[Role, str], ...]


Compose = Callable[[Question, Evidence, Sequence[Message]], Prompt]

Aside = Found | Usage
Piece = str | Aside  # of a draft: text as it comes, what was looked up, what it cost


class Writer(Protocol):
    """Evidence to prose. What it writes is checked sentence by sentence before anyone sees it.

    A draft that ends is whole: a writer that is cut off raises WriterFailed.
    """

    @property
    def name(self) -> str: ...

    def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[Piece]: ...


# --- conversations and the log of questions ---------------------------------------------------


class Anyone(Enum):
    """The operator's view: every owner's threads. No request ever carries it."""

    ANYONE = "anyone"


ANYONE: Literal[Anyone.ANYONE] = Anyone.ANYONE
Owner = str | None | Literal[Anyone.ANYONE]


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread as a list shows it."""

    id: str
    created_at: datetime
    updated_at: datetime
    messages: int
    topic_summary: str | None = None
    owner: str | None = None
    archived_at: datetime | None = None


class ThreadStore(Protocol):
    """Conversations that readers asked to be kept, each bound to who began it."""

    async def read(self, thread_id: str, *, owner: Owner, whole: bool = False) -> Thread | None:
        """The thread with its last 50 messages, or with all of them; None if there is none.

        NotFound: it is another owner's. Outside, the two are never told apart.
        """
        ...

    async def append(
        self, thread_id: str, messages: Sequence[Message], *, owner: str | None
    ) -> Thread:
        """Add messages at the end, in turns, creating or resuming the thread.

        All of them or none; NotFound if it is another owner's. Where the first one's ``request``
        is in the thread already, they take the place of what it brought before.
        """
        ...

    async def list(
        self, *, owner: Owner, limit: int = 20, offset: int = 0
    ) -> Sequence[ThreadSummary]:
        """One page, the last one written to first."""
        ...

    async def delete(self, thread_id: str, *, owner: Owner) -> bool:
        """Whether there was one to delete."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


class Attic(Protocol):
    """What is done to conversations as they age. Each call is one short transaction."""

    async def claim(self, chore: str, *, now: datetime, every: timedelta) -> bool:
        """Whether this caller does the chore now: of all workers one, once in ``every``."""
        ...

    async def archive(
        self, *, before: datetime, now: datetime, limit: int, only: str | None = None
    ) -> int:
        """Archive up to ``limit`` threads without a message since ``before``; how many it was."""
        ...

    async def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` threads without a message since ``before``; how many it was."""
        ...


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """S2's row about a question: never an answer, a passage or the selection's words."""

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
    network: str | None = None  # of the client: its address without the last part


@dataclass(frozen=True, slots=True)
class DayTally:
    """How the questions of a day (UTC) went."""

    day: date
    answered: int = 0
    refused: int = 0
    failed: int = 0


SCORE_BINS = 20  # of equal width, from 0 to 1


@dataclass(frozen=True, slots=True)
class Tally:
    """What the log says in figures: no question's words are in it."""

    days: tuple[DayTally, ...] = ()  # those with questions, the oldest first
    scores: tuple[int, ...] = (0,) * SCORE_BINS  # questions by the score of their best passage
    times_ms: Mapping[int, int] = field(default_factory=dict)  # milliseconds -> questions
    refusals: Mapping[str, int] = field(default_factory=dict)  # by their reason


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question to the whole book that it did not answer, or hardly."""

    text: str
    refused: int
    unsure: int  # answered, from passages that scored low
    last_at: datetime

    @property
    def count(self) -> int:
        return self.refused + self.unsure


class QueryLog(Protocol):
    """What was asked and how it went, for the author; it may fail, the answer may not."""

    async def record(self, queries: Sequence[LoggedQuery]) -> None:
        """Write them all or none; one that is already there is left as it is."""
        ...

    async def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` questions asked before; how many it was."""
        ...

    async def tally(self, *, since: datetime) -> Tally:
        """The figures of what was asked since then."""
        ...

    async def unanswered(
        self, *, since: datetime, below: float, limit: int
    ) -> Sequence[Unanswered]:
        """Refused since then, or answered though no passage scored ``below`` or more.

        Word for word the same is one question; the commonest first, of these the latest. One
        whose words were not kept is not among them, nor one about a selection.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reader's verdict on an answer: his words only where he agreed that they are kept."""

    id: str  # a UUID
    query: str | None  # the id of the question in the query log
    verdict: str  # up, down
    reason: str | None
    text: str | None
    given_at: datetime


class FeedbackStore(Protocol):
    """What readers thought of answers, for the author; kept as long as the query log."""

    async def add(self, feedback: Feedback) -> None:
        """Keep it, in the place of an earlier one with its id: a reader may change his mind."""
        ...

    async def recent(self, *, since: datetime, limit: int) -> list[Feedback]:
        """What was given since then, the last first."""
        ...

    async def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` given before; how many it was."""
        ...

    async def close(self) -> None: ...


# --- the catalog: what an ingest knows and leaves behind -------------------------------------


@dataclass(frozen=True, slots=True)
class Generation:
    """A published state of the book."""

    name: str
    embedder: str
    dimension: int
    passages: int
    fingerprint: str  # of everything that went into it: equal fingerprints, equal generations
    vocabulary: bytes
    origin: str = ""  # where the book was read from, so that it can be compared with it
    vectors: VectorState = VectorState.READY
    calibration: str = ""  # fitted to this book, as JSON; empty where the shipped weights hold


@dataclass(frozen=True, slots=True)
class StoredVectors:
    key: str  # SHA-256 of the text that was embedded
    vector: Vectors
    unit_vectors: Vectors


class Catalog(Protocol):
    """The truth: which passages the book has, and their vectors. The index is derived from it."""

    def ingesting(self) -> AbstractContextManager[None]:
        """Held by the one ingest at work; a second one gets IngestRunning."""
        ...

    def passages(self) -> dict[str, Passage]:
        """Every passage of the book as last committed, by id, in the order of the commit."""
        ...

    def known_vectors(self, embedder: str) -> set[str]: ...

    def add_vectors(self, embedder: str, vectors: Sequence[StoredVectors]) -> None:
        """Keep vectors durably as they are made, so that an interrupted ingest resumes."""
        ...

    def vectors(self, embedder: str, keys: Sequence[str]) -> dict[str, StoredVectors]: ...

    def commit(
        self, passages: Sequence[Passage], generation: Generation, *, keep_vectors: Set[str]
    ) -> None:
        """In one transaction: these are the book's passages, and this generation serves them.

        Of the generation's embedder, only the vectors with these keys are still needed.
        """
        ...

    def current(self) -> Generation | None: ...

    def served(self) -> str | None:
        """The current generation's name alone: asked before every question."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key. The key itself is nowhere but with whoever holds it."""

    id: str
    digest: str  # HMAC-SHA-256 of the key, hexadecimal
    label: str
    created_at: datetime
    origins: tuple[str, ...] = ()  # with some, it is publishable: for browsers on these pages
    revoked_at: datetime | None = None


class KeyStore(Protocol):
    async def add(self, key: ApiKey) -> None: ...

    async def all(self) -> list[ApiKey]:
        """Every key ever made, the oldest first."""
        ...

    async def revoke(self, key_id: str, at: datetime) -> bool:
        """Whether there was such a key to revoke; one that is revoked stays as it was."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Count:
    allowed: bool
    remaining: int
    reset_s: float  # until the oldest one counted leaves the window


class Counter(Protocol):
    """Counts in moving windows: in any ``seconds``, at most ``limit`` are allowed."""

    async def take(self, key: str, *, limit: int, seconds: int) -> Count: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class KeptReply:
    """An answer as it left, to be given again to whoever repeats the request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class ClaimState(StrEnum):
    MINE = "mine"  # answer it, then keep or release
    RUNNING = "running"  # someone else is answering it
    DONE = "done"
    OTHER = "other"  # the key came with another request


@dataclass(frozen=True, slots=True)
class Claim:
    state: ClaimState
    token: str = ""  # of the one who may keep or release
    reply: KeptReply | None = None


KEPT_S = 24 * 60 * 60
HELD_EVERY_S = 0.5  # while it is being answered, its claim is renewed
ABANDONED_S = 2.5  # without that, whoever claimed it is gone: the next one need not wait long


class ReplyStore(Protocol):
    """Requests that say they may be repeated: each is answered once and kept for a day."""

    async def claim(self, key: str, fingerprint: str) -> Claim: ...

    async def hold(self, claims: Mapping[str, str]) -> None:
        """Keys with their tokens, which are still being answered: they are as good as new."""
        ...

    async def keep(self, key: str, token: str, reply: KeptReply) -> None: ...

    async def release(self, key: str, token: str) -> None:
        """Nothing came of it: the next one may try."""
        ...

    async def close(self) -> None: ...
