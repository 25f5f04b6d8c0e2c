"""In-memory ``PassageStore`` that finds passages by keywords.

Fallback for an index that does not answer: the catalog contains all it needs. Building it takes a
second for two thousand passages, so it is built on first use.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bythebook.interfaces.store import Candidate, Filters, IndexedPassage
from bythebook.language.terms import Vocabulary
from bythebook.providers.qdrant.payload import to_filterable
from bythebook.types import Passage

if TYPE_CHECKING:
    from bythebook.types import Vectors


class KeywordStore:
    def __init__(self, passages: Iterable[Passage], vocabulary: Vocabulary) -> None:
        nothing = np.zeros((0, 0), dtype=np.float32)
        self._vocabulary = vocabulary
        self._entries: dict[str, IndexedPassage] = {}
        self._places: dict[int, list[tuple[str, float]]] = {}  # term to passages and weights
        for passage in passages:
            terms = vocabulary.weigh(passage)
            self._entries[passage.id] = IndexedPassage(passage, None, nothing, terms)
            for term, weight in terms.items():
                self._places.setdefault(term, []).append((passage.id, weight))

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        del vector  # there are no vectors to compare with
        return await asyncio.to_thread(self._find, list(terms), limit, filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return [self._entries[name] for name in passage_ids if name in self._entries]

    async def count(self) -> int:
        return len(self._entries)

    async def close(self) -> None:
        """Do nothing."""

    def _find(self, terms: list[int], limit: int, filters: Filters) -> list[Candidate]:
        weights: dict[str, float] = {}
        for term in terms:
            idf = self._vocabulary.idf(term)
            for name, weight in self._places.get(term, ()):
                weights[name] = weights.get(name, 0.0) + weight * idf
        fitting = (name for name in weights if self._fits(name, filters))
        best = heapq.nlargest(limit, fitting, key=lambda name: (weights[name], name))
        return [Candidate.of(self._entries[name], None) for name in best]

    def _fits(self, name: str, filters: Filters) -> bool:
        if not filters:
            return True
        values = to_filterable(self._entries[name].passage)
        return all(values.get(field) == value for field, value in filters.items())
