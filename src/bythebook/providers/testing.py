"""Deterministic in-memory fakes of every interface, without a model, for tests and examples."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from bythebook.interfaces.conversations import (
    ANYONE,
    SCORE_BINS,
    DayTally,
    Feedback,
    LoggedQuery,
    Owner,
    Summarise,
    Tally,
    ThreadSummary,
    Unanswered,
)
from bythebook.interfaces.reader import SentenceSupport
from bythebook.interfaces.store import Generation, IndexedPassage, StoredVectors, index_missing
from bythebook.interfaces.thread_rules import LIVE_MESSAGES, before, in_turn, no_such_thread
from bythebook.language.terms import terms_of
from bythebook.providers.flat_index import FlatStore
from bythebook.types import Evidence, Message, Passage, PassageReading, Question, Thread

if TYPE_CHECKING:
    from bythebook.interfaces.embedding import TextRole
    from bythebook.types import Vectors


@dataclass
class FakeEmbedder:
    """Embedder that hashes terms into a bag of words: texts that share words are near."""

    name: str = "fake:bag"
    dimension: int = 64
    limit: int = 512
    calls: list[list[str]] = field(default_factory=list)

    async def prepare(self) -> None:
        """Do nothing."""

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        del role
        self.calls.append(list(texts))
        rows = [self.vector(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def vector(self, text: str) -> Vectors:
        vector = np.full(self.dimension, 1e-3, dtype=np.float32)
        for term in terms_of(text):
            digest = hashlib.sha256(term.encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimension] += 1
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit


class MemoryGenerationStore:
    """Generations in memory, searched as those in files are."""

    def __init__(self, *, dimension: int = 64) -> None:
        self._dimension = dimension
        self.generations: dict[str, FlatStore] = {}

    async def publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        # On a thread: reading the entries queries the catalog.
        store = await asyncio.to_thread(FlatStore.of, entries, dimension=self._dimension)
        self.generations[generation] = store
        return await store.count()

    async def open(self, generation: str) -> FlatStore:
        if generation not in self.generations:
            raise index_missing()
        return self.generations[generation]

    async def discard(self, *, keep: Sequence[str]) -> None:
        self.generations = {name: s for name, s in self.generations.items() if name in keep}

    async def close(self) -> None:
        """Do nothing."""


class MemoryCatalog:
    def __init__(self) -> None:
        self._passages: dict[str, Passage] = {}
        self._vectors: dict[tuple[str, str], StoredVectors] = {}
        self._current: Generation | None = None

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        yield

    def passages(self) -> dict[str, Passage]:
        return dict(self._passages)

    def known_vectors(self, embedder: str) -> set[str]:
        return {key for name, key in self._vectors if name == embedder}

    def add_vectors(self, embedder: str, vectors: Sequence[StoredVectors]) -> None:
        self._vectors.update({(embedder, stored.key): stored for stored in vectors})

    def vectors(self, embedder: str, keys: Sequence[str]) -> dict[str, StoredVectors]:
        wanted = ((key, self._vectors.get((embedder, key))) for key in keys)
        return {key: stored for key, stored in wanted if stored is not None}

    def commit(
        self, passages: Sequence[Passage], generation: Generation, *, keep_vectors: Set[str]
    ) -> None:
        self._passages = {passage.id: passage for passage in passages}
        self._vectors = {
            (name, key): stored
            for (name, key), stored in self._vectors.items()
            if name != generation.embedder or key in keep_vectors
        }
        self._current = generation

    def current(self) -> Generation | None:
        return self._current

    def served(self) -> str | None:
        return self._current.name if self._current else None


class MemoryThreads:
    """ThreadStore and ThreadArchive in memory: whole threads in a dict."""

    def __init__(self) -> None:
        self._threads: dict[str, Thread] = {}
        self._due: dict[str, datetime] = {}

    async def read(self, thread_id: str, *, owner: Owner, whole: bool = False) -> Thread | None:
        thread = self._threads.get(thread_id)
        if thread is None:
            return None
        if owner not in (ANYONE, thread.owner):
            raise no_such_thread()
        return thread if whole else _live(thread)

    async def append(
        self,
        thread_id: str,
        messages: Sequence[Message],
        *,
        owner: str | None,
        summarise: Summarise | None = None,
    ) -> Thread:
        first = messages[0].timestamp
        thread = self._threads.get(thread_id) or Thread(thread_id, (), first, first, owner=owner)
        if thread.owner != owner:
            raise no_such_thread()
        written = _with(thread.messages, messages)
        topics = summarise(written[-LIVE_MESSAGES:]) if summarise else thread.topic_summary
        self._threads[thread_id] = replace(
            thread,
            messages=written,
            updated_at=written[-1].timestamp,
            topic_summary=topics,
            archived_at=None,
        )
        return _live(self._threads[thread_id])

    async def list(
        self, *, owner: Owner, limit: int = 20, offset: int = 0
    ) -> Sequence[ThreadSummary]:
        mine = [thread for thread in self._threads.values() if owner in (ANYONE, thread.owner)]
        mine.sort(key=lambda thread: thread.id)
        mine.sort(key=lambda thread: thread.updated_at, reverse=True)
        return [_summary(thread) for thread in mine[offset : offset + limit]]

    async def delete(self, thread_id: str, *, owner: Owner) -> bool:
        thread = self._threads.get(thread_id)
        if thread is None or owner not in (ANYONE, thread.owner):
            return False
        del self._threads[thread_id]
        return True

    async def claim(self, chore: str, *, now: datetime, every: timedelta) -> bool:
        due = chore not in self._due or self._due[chore] <= now
        if due:
            self._due[chore] = now + every
        return due

    async def archive(
        self, *, before: datetime, now: datetime, limit: int, only: str | None = None
    ) -> int:
        live = [t for t in self._idle(before) if t.archived_at is None and only in (None, t.id)]
        self._threads.update({t.id: replace(t, archived_at=now) for t in live[:limit]})
        return len(live[:limit])

    async def purge(self, *, before: datetime, limit: int) -> int:
        idle = self._idle(before)[:limit]
        for thread in idle:
            del self._threads[thread.id]
        return len(idle)

    async def close(self) -> None:
        """Do nothing."""

    def _idle(self, before: datetime) -> Sequence[Thread]:
        idle = [thread for thread in self._threads.values() if thread.updated_at < before]
        return sorted(idle, key=lambda thread: thread.updated_at)


def _with(stored: tuple[Message, ...], new: Sequence[Message]) -> tuple[Message, ...]:
    """Append messages, or replace those that the same request added before."""
    first = before(stored, new[0].request)
    if len(first) == len(stored):
        return (*stored, *in_turn(stored[-1] if stored else None, new))
    rest = stored[len(first) :]
    replaced = (replace(b, timestamp=a.timestamp) for a, b in zip(rest, new, strict=False))
    return (*first, *replaced, *rest[len(new) :])


def _live(thread: Thread) -> Thread:
    earlier = max(0, len(thread.messages) - LIVE_MESSAGES)
    return replace(thread, messages=thread.messages[earlier:], earlier=earlier)


def _summary(thread: Thread) -> ThreadSummary:
    return ThreadSummary(
        id=thread.id,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        messages=len(thread.messages),
        topic_summary=thread.topic_summary,
        owner=thread.owner,
        archived_at=thread.archived_at,
    )


class MemoryQueryLog:
    def __init__(self) -> None:
        self.queries: dict[str, LoggedQuery] = {}

    async def record(self, queries: Sequence[LoggedQuery]) -> None:
        for query in queries:
            self.queries.setdefault(query.id, query)

    async def purge(self, *, before: datetime, limit: int) -> int:
        old = [query.id for query in self.queries.values() if query.asked_at < before][:limit]
        for query_id in old:
            del self.queries[query_id]
        return len(old)

    async def tally(self, *, since: datetime) -> Tally:
        asked = [query for query in self.queries.values() if query.asked_at >= since]
        days: dict[date, Counter[str]] = defaultdict(Counter)
        scores = [0] * SCORE_BINS
        for query in asked:
            days[query.asked_at.astimezone(UTC).date()][query.status] += 1
            if query.best_score is not None and query.mode == "standard_rag":
                scores[min(int(query.best_score * SCORE_BINS), SCORE_BINS - 1)] += 1
        return Tally(
            days=tuple(
                DayTally(day, outcomes["success"], outcomes["refused"], outcomes["error"])
                for day, outcomes in sorted(days.items())
            ),
            scores=tuple(scores),
            times_ms=Counter(query.total_ms for query in asked),
            refusals=Counter(query.refusal for query in asked if query.refusal),
        )

    async def unanswered(
        self, *, since: datetime, below: float, limit: int
    ) -> Sequence[Unanswered]:
        by_text: dict[str, Unanswered] = {}
        for query in self.queries.values():
            unsure = query.status == "success" and (query.best_score or 0.0) < below
            refused = query.status == "refused"
            is_asked = query.asked_at >= since and query.text and query.mode == "standard_rag"
            if is_asked and (refused or unsure):
                one = by_text.get(query.text) or Unanswered(query.text, 0, 0, query.asked_at)
                by_text[query.text] = Unanswered(
                    query.text,
                    one.refused + refused,
                    one.unsure + unsure,
                    max(one.last_at, query.asked_at),
                )
        order = sorted(by_text.values(), key=lambda one: (-one.count, -one.last_at.timestamp()))
        return order[:limit]

    async def close(self) -> None:
        """Do nothing."""


class MemoryFeedback:
    def __init__(self) -> None:
        self.given: dict[str, Feedback] = {}

    async def add(self, feedback: Feedback) -> None:
        self.given[feedback.id] = feedback

    async def recent(self, *, since: datetime, limit: int) -> list[Feedback]:
        recent = [one for one in self.given.values() if one.given_at >= since]
        recent.sort(key=lambda one: one.id)
        recent.sort(key=lambda one: one.given_at, reverse=True)
        return recent[:limit]

    async def purge(self, *, before: datetime, limit: int) -> int:
        old = [one.id for one in self.given.values() if one.given_at < before][:limit]
        for feedback_id in old:
            del self.given[feedback_id]
        return len(old)

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class ScriptedWriter:
    """Writer that returns a given script whatever the evidence, to test the sentence check."""

    script: Sequence[str]
    name: str = "fake:script"

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        del question, evidence, history
        for piece in self.script:
            yield piece


@dataclass
class FakeReader:
    """Reader that compares terms: a text is supported by the share of its terms in a passage."""

    name: str = "fake:terms"

    async def prepare(self) -> None:
        """Do nothing."""

    async def read(self, question: str, passages: Sequence[Passage]) -> list[PassageReading]:
        return [self._read(question, passage) for passage in passages]

    async def support(
        self, sentences: Sequence[str], evidence: Sequence[Passage]
    ) -> list[SentenceSupport]:
        return [self._support(sentence, evidence) for sentence in sentences]

    def _read(self, question: str, passage: Passage) -> PassageReading:
        shares = [_share(question, passage.unit_text(unit)) for unit in passage.units]
        if not shares:
            return PassageReading(_share(question, passage.text), None, None)
        best = max(range(len(shares)), key=shares.__getitem__)
        unit = passage.units[best]
        span = (unit.start, unit.end) if shares[best] else None
        return PassageReading(shares[best], span, best)

    def _support(self, sentence: str, evidence: Sequence[Passage]) -> SentenceSupport:
        shares = [_share(sentence, passage.text) for passage in evidence]
        if not shares:
            return SentenceSupport(0.0, None)
        best = max(range(len(shares)), key=shares.__getitem__)
        return SentenceSupport(shares[best], best)


def _share(text: str, passage: str) -> float:
    """Return the share of the text's terms that the passage has, 0 to 1."""
    terms = set(terms_of(text))
    return len(terms & set(terms_of(passage))) / len(terms) if terms else 0.0
