"""Rate limits per minute, and a limit of concurrent requests per client."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from bythebook.errors import RateLimited
from bythebook.interfaces.access import RateCount, RateCounter

_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Rule:
    """Limit of requests per minute for one key, session or address."""

    each: str  # "key", "session", "address" or "reader", shown to users
    who: str  # its identifier
    limit: int


Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    headers: Headers  # remaining quota, set on rejected requests, too
    refusal: RateLimited | None = None


class Limiter:
    """Apply all rules of a request; the headers report the one with the least quota left."""

    def __init__(self, counter: RateCounter, pepper: bytes) -> None:
        self._counter = counter
        self._pepper = pepper

    async def admit(self, rules: Sequence[Rule]) -> Verdict:
        """Count the request under its rules in order, up to the first that rejects it.

        The narrowest rule comes first: a request it rejects does not count for the wider ones.
        """
        tightest: tuple[Rule, RateCount] | None = None
        for rule in rules:
            count = await self._counter.take(self._name(rule), limit=rule.limit, seconds=_MINUTE)
            if not count.allowed:
                return Verdict(_headers(rule, count), _too_many(rule, count))
            if tightest is None or count.remaining < tightest[1].remaining:
                tightest = rule, count
        return Verdict(() if tightest is None else _headers(*tightest))

    def _name(self, rule: Rule) -> str:
        """Return the storage key: a keyed digest, so that no address or session is stored."""
        text = f"{rule.each}:{rule.who}"
        return hmac.new(self._pepper, text.encode(), hashlib.sha256).hexdigest()


def _too_many(rule: Rule, count: RateCount) -> RateLimited:
    return RateLimited(
        f"{rule.limit} questions a minute are allowed for each {rule.each}.",
        retry_after=max(1.0, count.reset_s),
        hint="Ask again a little later.",
    )


def _headers(rule: Rule, count: RateCount) -> Headers:
    return (
        ("RateLimit-Policy", f'"{rule.each}";q={rule.limit};w={_MINUTE}'),
        ("RateLimit-Limit", str(rule.limit)),
        ("RateLimit-Remaining", str(count.remaining)),
        ("RateLimit-Reset", str(math.ceil(count.reset_s))),
    )


class Places:
    """Limit of concurrent requests per client, in this process.

    A stream above the limit is rejected, so that a page can report it; other requests wait. The
    wait is short: clients above their rate limit have been rejected before.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def taken_by(self, caller: str, *, waits: bool) -> AsyncIterator[None]:
        places = self._callers.setdefault(caller, asyncio.Semaphore(self._limit))
        if places.locked() and not waits:
            raise RateLimited(
                f"{self._limit} streams may be open at once.",
                retry_after=1.0,
                hint="Wait until one has ended.",
            )
        async with places:
            yield
