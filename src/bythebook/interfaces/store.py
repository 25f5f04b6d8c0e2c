"""Interfaces of passage stores, generations and the catalog."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.types import FilterValue, Passage, VectorState

if TYPE_CHECKING:
    from bythebook.types import Vectors


Filters = Mapping[str, FilterValue]


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """Passage with its vectors and term weights."""

    passage: Passage
    vector: Vectors | None  # (dimension,); None while the book's vectors are pending
    unit_vectors: Vectors  # (units, dimension)
    terms: Mapping[int, float]  # term number -> BM25 weight without IDF


@dataclass(frozen=True, slots=True)
class Candidate:
    """Passage returned by a search, with the values used for ranking."""

    passage_id: str
    content_hash: str
    cosine: float  # with the passage; 0 in a keyword-only search
    unit_cosine: float  # with the nearest of its units
    terms: Mapping[int, float]  # as in IndexedPassage

    @classmethod
    def of(cls, entry: IndexedPassage, vector: Vectors | None) -> Candidate:
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
    """One generation of a book, opened for reading and immutable."""

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        """Return the union of the ``limit`` best of three rankings, unordered, without duplicates.

        Semantic: cosine with the passage, and cosine with the best of its units. Keyword: sum of
        the terms' BM25 weights times their IDF. Without a vector, keyword only.
        """
        ...

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        """Return the entries with these ids in the given order, without unknown ids."""
        ...

    async def count(self) -> int: ...

    async def close(self) -> None: ...


class GenerationStore(Protocol):
    """Store of several generations of a book. Readers keep the one they opened."""

    async def publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        """Write a complete generation durably and return its number of passages."""
        ...

    async def open(self, generation: str) -> PassageStore: ...

    async def discard(self, *, keep: Sequence[str]) -> None:
        """Remove every generation except ``keep``, of which the first is the one served."""
        ...

    async def close(self) -> None:
        """Close connections; opened passage stores become unusable."""
        ...


@dataclass(frozen=True, slots=True)
class Generation:
    """Published version of the book's index."""

    name: str
    embedder: str
    dimension: int
    passages: int
    fingerprint: str  # of all inputs: equal fingerprints mean equal generations
    vocabulary: bytes
    origin: str = ""  # where the book was read from, to detect later changes
    vectors: VectorState = VectorState.READY
    calibration: str = ""  # fitted to this book, as JSON; empty: the shipped weights apply
    published_at: datetime | None = field(default=None, compare=False)  # if recorded


@dataclass(frozen=True, slots=True)
class StoredVectors:
    key: str  # SHA-256 of the text that was embedded
    vector: Vectors
    unit_vectors: Vectors


class Catalog(Protocol):
    """Source of truth for the book's passages and vectors. The index is derived from it."""

    def ingesting(self) -> AbstractContextManager[None]:
        """Return a lock for the ingest; a concurrent second ingest raises IngestRunning."""
        ...

    def passages(self) -> dict[str, Passage]:
        """Return all passages of the last commit by id, in the order of the commit."""
        ...

    def known_vectors(self, embedder: str) -> set[str]: ...

    def add_vectors(self, embedder: str, vectors: Sequence[StoredVectors]) -> None:
        """Store vectors durably as they are computed, so that an interrupted ingest resumes."""
        ...

    def vectors(self, embedder: str, keys: Sequence[str]) -> dict[str, StoredVectors]: ...

    def commit(
        self, passages: Sequence[Passage], generation: Generation, *, keep_vectors: Set[str]
    ) -> None:
        """Replace the book's passages and set the current generation, in one transaction.

        Vectors of the generation's embedder whose keys are not in ``keep_vectors`` are deleted.
        """
        ...

    def current(self) -> Generation | None: ...

    def served(self) -> str | None:
        """Return only the current generation's name: called before every question."""
        ...


# --- rules that every store keeps ---------------------------------------------------------------


def to_filterable(passage: Passage) -> dict[str, Any]:
    """Return the fields that the contracts (query, ask, envelope, plain, chat) filter by."""
    return {
        "module": passage.place.module,
        "chapter": passage.place.chapter,
        "section": passage.place.heading,
        "url": passage.place.url,
        "language": passage.metadata.language,
        "difficulty": passage.metadata.difficulty,
        "week": passage.metadata.week,
        "hasCode": passage.metadata.has_code,
        "kind": sorted({passage.text_kind.value, *(u.text_kind.value for u in passage.units)}),
    }


def check_vectors(entry: IndexedPassage, dimension: int) -> None:
    """Raise StoreFailed if a vector has the wrong dimension or is not finite."""
    if entry.vector is None:
        return
    for some in (entry.vector[None, :], entry.unit_vectors):
        if len(some) and (some.shape[1] != dimension or not (abs(some) < math.inf).all()):
            raise StoreFailed(
                "A vector has the wrong dimension or is not finite.",
                hint="Check the embedder; nothing was published.",
            )


def index_missing() -> IndexDamaged:
    return IndexDamaged(
        "The index that the catalog names is missing.", hint="Run the ingest again."
    )
