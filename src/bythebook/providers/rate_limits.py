"""Rate-limit counts in memory or on Redis, and the fall-back from a shared store to memory."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from limits import RateLimitItemPerSecond
from limits.errors import StorageError
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from bythebook.errors import ServiceError
from bythebook.interfaces.access import RateCount, RateCounter

_PAUSE_S = 5.0  # before a failed store is tried again
_WAIT_S = 0.5  # the longest that a request waits to be counted on Redis
_CONNECTIONS = 16

_log = logging.getLogger(__name__)


class MemoryCounter:
    """Moving-window counter of ``limits``; synchronous, as a hit takes only microseconds."""

    def __init__(self) -> None:
        self._windows = MovingWindowRateLimiter(MemoryStorage())

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        window = RateLimitItemPerSecond(limit, seconds)
        allowed = self._windows.hit(window, key)
        reset, remaining = self._windows.get_window_stats(window, key)
        return _count(allowed, reset, remaining)

    async def close(self) -> None: ...


class FallbackCounter:
    """Counter that falls back to memory while its store is unavailable.

    Requests continue: a rate limit protects the service and must not stop it. Until the store is
    back each worker counts separately, so the limit is at most multiplied by the number of workers.
    """

    def __init__(
        self,
        store: RateCounter,
        fallback: RateCounter,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._fallback = fallback
        self._clock = clock
        self._down_until = float("-inf")
        self._is_down = False

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        if self._clock() < self._down_until:
            return await self._fallback.take(key, limit=limit, seconds=seconds)
        try:
            count = await self._store.take(key, limit=limit, seconds=seconds)
        except ServiceError as error:
            self._down_until = self._clock() + _PAUSE_S
            if not self._is_down:
                _log.warning("counting rate limits in memory: %s", error.message)
            self._is_down = True
            return await self._fallback.take(key, limit=limit, seconds=seconds)
        self._is_down = False
        return count

    async def close(self) -> None:
        await self._store.close()
        await self._fallback.close()


class RedisCounter:
    """Moving-window counter on a Redis that workers and hosts share (extra ``redis``)."""

    def __init__(self, url: str, *, wait_s: float = _WAIT_S) -> None:
        from limits.aio.storage import RedisStorage
        from limits.aio.strategies import MovingWindowRateLimiter
        from redis.exceptions import RedisError

        self._failures = (StorageError, RedisError)
        self._storage = RedisStorage(
            f"async+{url}",
            wrap_exceptions=True,
            implementation="redispy",
            key_prefix="bythebook",
            socket_timeout=wait_s,
            socket_connect_timeout=wait_s,
        )
        self._windows = MovingWindowRateLimiter(self._storage)
        self._turns = asyncio.Semaphore(_CONNECTIONS)

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        window = RateLimitItemPerSecond(limit, seconds)
        try:
            async with self._turns:
                allowed = await self._windows.hit(window, key)
                reset, remaining = await self._windows.get_window_stats(window, key)
        except self._failures as error:
            raise ServiceError(
                "Redis did not answer.", hint="Check access.rate_limit_store."
            ) from error
        return _count(allowed, reset, remaining)

    async def close(self) -> None:
        bridge: Any = self._storage.bridge
        await bridge.get_connection().aclose()


def _count(allowed: bool, reset: float, remaining: int) -> RateCount:
    return RateCount(allowed, max(0, remaining), max(0.0, reset - time.time()))
