"""A generation behind a network in; the same, with the passages that were fetched last at hand.

A generation never changes, and readers ask for the same passages again and again. What is sent of
each is some thousands of numbers: reading them takes a third or more of a question's time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bythebook.ports import Candidate, Entry, Filters, PassageStore
from bythebook.recent import Recent

if TYPE_CHECKING:
    from bythebook.model import Vectors


class RememberedStore:
    def __init__(self, store: PassageStore, *, most: int) -> None:
        self._store = store
        self._fetched: Recent[str, Entry] = Recent(most, fresh_s=math.inf)

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        return await self._store.find(vector, terms, limit=limit, filters=filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[Entry]:
        known = {name: self._fetched.get(name) for name in passage_ids}
        if missing := [name for name, entry in known.items() if entry is None]:
            for fetched in await self._store.fetch(missing):
                known[fetched.passage.id] = fetched
                self._fetched.put(fetched.passage.id, fetched)
        return [entry for name in passage_ids if (entry := known[name]) is not None]

    async def count(self) -> int:
        return await self._store.count()

    async def close(self) -> None:
        await self._store.close()
