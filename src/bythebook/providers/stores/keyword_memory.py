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
from bythebook.providers.qdrant.payload import matches
from bythebook.types import Passage

if TYPE_CHECKING:
    from bythebook.types import Vectors


class KeywordStore:
    def __init__(self, passages: Iterable[Passage], vocabulary: Vocabulary) -> None:
        nothing = np.zeros((0, 0), dtype=np.float32)
        self._vocabulary = vocabulary
        self._entries: dict[str, IndexedPassage] = {}
        self._postings: dict[int, list[tuple[str, float]]] = {}  # term to passages and weights
        for passage in passages:
            terms = vocabulary.weigh(passage)
            self._entries[passage.id] = IndexedPassage(passage, None, nothing, terms)
            for term, weight in terms.items():
                self._postings.setdefault(term, []).append((passage.id, weight))

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        del vector  # there are no vectors to compare with
        return await asyncio.to_thread(self._find, list(terms), limit, filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return [entry for one in passage_ids if (entry := self._entries.get(one)) is not None]

    async def count(self) -> int:
        return len(self._entries)

    async def close(self) -> None:
        """Do nothing."""

    def _find(self, terms: list[int], limit: int, filters: Filters) -> list[Candidate]:
        weights: dict[str, float] = {}
        for term in terms:
            idf = self._vocabulary.idf(term)
            for passage_id, weight in self._postings.get(term, ()):
                weights[passage_id] = weights.get(passage_id, 0.0) + weight * idf
        fitting = (one for one in weights if matches(self._entries[one].passage, filters))
        best = heapq.nlargest(limit, fitting, key=lambda one: (weights[one], one))
        return [Candidate.of(self._entries[one], None) for one in best]
