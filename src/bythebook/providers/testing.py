"""Fakes of the models, and the stores in memory, for tests and examples."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bythebook.interfaces.conversations import Feedback, LoggedQuery
from bythebook.interfaces.models import SentenceSupport
from bythebook.interfaces.store import IndexedPassage, index_missing
from bythebook.language.terms import terms_of
from bythebook.providers.flat_index import FlatStore
from bythebook.providers.sql.access import SqlKeys, SqlReplies
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import SqlStore, open_memory_database
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.providers.sql.query_log import SqlFeedback, SqlQueryLog
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Evidence, Message, Passage, PassageReading, Question

if TYPE_CHECKING:
    from bythebook.interfaces.models import TextRole
    from bythebook.types import Vectors

T = TypeVar("T")


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


class MemoryCatalog(SqlCatalog):
    """The catalog on a database in memory."""

    def __init__(self) -> None:
        super().__init__(open_memory_database(), None)


class _AtOnce(DeadlineExecutor):
    """Executor for a database in memory, which needs no thread to wait for it."""

    async def run(self, work: Callable[[], T], *, deadlines: float = 1) -> T:
        del deadlines
        return work()


class _InMemory(SqlStore):
    """A store on a database in memory, without database threads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(open_memory_database(), **options)
        self._executor = _AtOnce(deadline_s=0)


class MemoryThreads(_InMemory, SqlThreads):
    pass


class MemoryKeys(_InMemory, SqlKeys):
    pass


class MemoryReplies(_InMemory, SqlReplies):
    pass


class MemoryQueryLog(_InMemory, SqlQueryLog):
    """The query log; ``queries`` are those recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: dict[str, LoggedQuery] = {}

    async def record(self, entries: Sequence[LoggedQuery]) -> None:
        await super().record(entries)
        self.queries = {**self.queries, **{entry.id: entry for entry in entries}}


class MemoryFeedback(_InMemory, SqlFeedback):
    """The feedback; ``given`` is what was added."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Feedback] = {}

    async def add(self, feedback: Feedback) -> None:
        await super().add(feedback)
        self.given[feedback.id] = feedback


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
            return PassageReading(_share(question, passage.text), None)
        best = max(range(len(shares)), key=shares.__getitem__)
        unit = passage.units[best]
        span = (unit.start, unit.end) if shares[best] else None
        return PassageReading(shares[best], span, tuple(shares))

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
