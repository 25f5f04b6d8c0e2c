"""API keys, rate counters and stored (idempotent) replies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Stored record of an API key. The key itself is never stored, only its digest."""

    id: str
    digest: str  # HMAC-SHA-256 of the key, hexadecimal
    label: str
    created_at: datetime
    origins: tuple[str, ...] = ()  # not empty: publishable, for browsers on these origins
    revoked_at: datetime | None = None
    is_author: bool = False  # may read the admin report


@dataclass(frozen=True, slots=True)
class RateCount:
    allowed: bool
    remaining: int
    reset_s: float  # seconds until the oldest counted request leaves the window


class RateCounter(Protocol):
    """Sliding-window rate limiter: at most ``limit`` requests in any ``seconds``."""

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class KeptReply:
    """Response as it was sent, stored to be replayed when the request is repeated."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class ClaimState(StrEnum):
    MINE = "mine"  # this caller answers the request, then calls keep or release
    RUNNING = "running"  # another caller is answering it
    DONE = "done"
    OTHER = "other"  # the idempotency key was used with a different request


@dataclass(frozen=True, slots=True)
class ReplyClaim:
    state: ClaimState
    token: str = ""  # identifies the caller that may keep or release
    reply: KeptReply | None = None


KEPT_S = 24 * 60 * 60


HELD_EVERY_S = 0.5  # interval of claim renewal while a request is being answered


ABANDONED_S = 2.5  # a claim not renewed for this long is void, so that a retry need not wait long
