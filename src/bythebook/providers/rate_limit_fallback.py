"""Rate-limit counter with an in-memory fallback."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from bythebook.errors import ServiceError
from bythebook.interfaces.access import RateCount, RateCounter

_PAUSE_S = 5.0  # before a failed store is tried again

_log = logging.getLogger(__name__)


class FallbackCounter:
    """Counter that falls back to memory while its store is unavailable.

    Requests continue: a rate limit protects the service and must not stop it. Until the store is
    back each worker counts separately, so the limit is at most multiplied by the number of workers.
    """

    def __init__(
        self, store: RateCounter, spare: RateCounter, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._spare = spare
        self._clock = clock
        self._away_until = float("-inf")
        self._is_away = False

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
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
