"""Cache of recently fetched passages in front of a remote passage store.

A generation never changes, and readers request the same passages repeatedly. Each consists of some
thousands of numbers: parsing them takes a third or more of a request's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cachetools import LRUCache

from bythebook.interfaces.store import Candidate, Filters, IndexedPassage, PassageStore

if TYPE_CHECKING:
    from bythebook.types import Vectors


class CachedStore:
    def __init__(self, store: PassageStore, *, most: int) -> None:
        self._store = store
        self._fetched: LRUCache[str, IndexedPassage] = LRUCache(most)

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        return await self._store.find(vector, terms, limit=limit, filters=filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        entries = {passage_id: self._fetched.get(passage_id) for passage_id in passage_ids}
        if missing := [passage_id for passage_id, entry in entries.items() if entry is None]:
            for fetched in await self._store.fetch(missing):
                entries[fetched.passage.id] = fetched
                self._fetched[fetched.passage.id] = fetched
        return [entry for one in passage_ids if (entry := entries[one]) is not None]

    async def count(self) -> int:
        return await self._store.count()

    async def close(self) -> None:
        await self._store.close()
