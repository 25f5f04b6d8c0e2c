"""A counter that may be away, and one that is always there, in; one that is always there out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from bythebook.errors import ServiceError
from bythebook.ports import Count, Counter

_PAUSE_S = 5.0  # before a store that failed is asked again

_log = logging.getLogger(__name__)


class SpareCounter:
    """Counts in memory while the store that counts is away.

    Questions go on: a limit protects the answers, it does not outrank them. Until the store is
    back each worker counts for itself, so that the limit is at most multiplied by their number.
    """

    def __init__(
        self, store: Counter, spare: Counter, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._spare = spare
        self._clock = clock
        self._away_until = float("-inf")
        self._is_away = False

    async def take(self, key: str, *, limit: int, seconds: int) -> Count:
        if self._clock() < self._away_until:
            return await self._spare.take(key, limit=limit, seconds=seconds)
        try:
            count = await self._store.take(key, limit=limit, seconds=seconds)
        except ServiceError as error:
            self._away_until = self._clock() + _PAUSE_S
            if not self._is_away:
                _log.warning("counting in memory until it is back: %s", error.message)
            self._is_away = True
            return await self._spare.take(key, limit=limit, seconds=seconds)
        self._is_away = False
        return count

    async def close(self) -> None:
        await self._store.close()
        await self._spare.close()
