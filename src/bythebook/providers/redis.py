"""Rate-limit counts in a Redis shared by several workers or hosts (extra ``redis``)."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.storage.redis.redispy import RedispyBridge
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from bythebook.errors import ServiceError
from bythebook.interfaces.access import RateCount

_WAIT_S = 0.5  # the longest that a request waits to be counted
_CONNECTIONS = 16


class RedisCounter:
    """Moving-window counter in a Redis list, updated atomically by a script."""

    def __init__(self, url: str, *, wait_s: float = _WAIT_S) -> None:
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
        except (StorageError, RedisError) as error:
            raise ServiceError(
                "Redis did not answer.", hint="Check access.rate_limit_store."
            ) from error
        return RateCount(allowed, max(0, remaining), max(0.0, reset - time.time()))

    async def close(self) -> None:
        assert isinstance(self._storage.bridge, RedispyBridge)
        await cast(Redis, self._storage.bridge.get_connection()).aclose()
