"""API keys, rate-limit counts and stored replies in memory, for a single worker."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from bythebook.interfaces.access import (
    ABANDONED_S,
    KEPT_S,
    ApiKey,
    ClaimState,
    KeptReply,
    RateCount,
    ReplyClaim,
)


class MemoryKeys:
    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}

    async def add(self, key: ApiKey) -> None:
        self._keys[key.id] = key

    async def all(self) -> list[ApiKey]:
        return list(self._keys.values())

    async def revoke(self, key_id: str, at: datetime) -> bool:
        key = self._keys.get(key_id)
        if key is not None and key.revoked_at is None:
            self._keys[key_id] = replace(key, revoked_at=at)
        return key is not None

    async def close(self) -> None: ...


class MemoryCounter:
    """Moving-window counter of ``limits``; synchronous, as a hit takes only microseconds."""

    def __init__(self) -> None:
        self._windows = MovingWindowRateLimiter(MemoryStorage())

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        window = RateLimitItemPerSecond(limit, seconds)
        allowed = self._windows.hit(window, key)
        reset, remaining = self._windows.get_window_stats(window, key)
        return RateCount(allowed, max(0, remaining), max(0.0, reset - time.time()))

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Row:
    fingerprint: str
    token: str
    claimed_at: float
    reply: KeptReply | None = None


class MemoryReplies:
    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._rows: dict[str, _Row] = {}

    async def claim(self, key: str, fingerprint: str) -> ReplyClaim:
        now = self._clock()
        self._rows = {k: row for k, row in self._rows.items() if not _is_gone(row, now)}
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row(fingerprint, secrets.token_hex(16), now)
            return ReplyClaim(ClaimState.MINE, row.token)
        if row.fingerprint != fingerprint:
            return ReplyClaim(ClaimState.OTHER)
        state = ClaimState.RUNNING if row.reply is None else ClaimState.DONE
        return ReplyClaim(state, reply=row.reply)

    async def hold(self, claims: Mapping[str, str]) -> None:
        for key, token in claims.items():
            if self._holds(key, token):
                self._rows[key] = replace(self._rows[key], claimed_at=self._clock())

    async def keep(self, key: str, token: str, reply: KeptReply) -> None:
        if self._holds(key, token):
            self._rows[key] = replace(self._rows[key], reply=reply)

    async def release(self, key: str, token: str) -> None:
        if self._holds(key, token):
            del self._rows[key]

    async def close(self) -> None: ...

    def _holds(self, key: str, token: str) -> bool:
        row = self._rows.get(key)
        return row is not None and row.token == token and row.reply is None


def _is_gone(row: _Row, now: float) -> bool:
    kept_s = ABANDONED_S if row.reply is None else KEPT_S
    return row.claimed_at < now - kept_s
