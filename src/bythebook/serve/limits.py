"""Who asks, and how often that was in the last minute, in; a verdict out."""

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
from bythebook.ports import Count, Counter

_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Rule:
    """At most so many a minute, for each of what is named."""

    each: str  # "key", "session" or "address", for a person
    who: str  # which of them
    limit: int


Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    headers: Headers  # how much is left, whether it was refused or not
    refusal: RateLimited | None = None


class Limiter:
    """Holds every rule of a request, and names the tightest in its headers."""

    def __init__(self, counter: Counter, pepper: bytes) -> None:
        self._counter = counter
        self._pepper = pepper

    async def admit(self, rules: Sequence[Rule]) -> Verdict:
        """Count the request under its rules in order, up to the one that refuses it.

        The narrowest comes first: what it refuses costs the wider ones nothing.
        """
        tightest: tuple[Rule, Count] | None = None
        for rule in rules:
            count = await self._counter.take(self._name(rule), limit=rule.limit, seconds=_MINUTE)
            if not count.allowed:
                return Verdict(_headers(rule, count), _too_many(rule, count))
            if tightest is None or count.remaining < tightest[1].remaining:
                tightest = rule, count
        return Verdict(() if tightest is None else _headers(*tightest))

    def _name(self, rule: Rule) -> str:
        """Addresses and sessions are stored under a keyed digest alone."""
        text = f"{rule.each}:{rule.who}"
        return hmac.new(self._pepper, text.encode(), hashlib.sha256).hexdigest()


def _too_many(rule: Rule, count: Count) -> RateLimited:
    return RateLimited(
        f"{rule.limit} questions a minute are allowed for each {rule.each}.",
        retry_after=max(1.0, count.reset_s),
        cure="Ask again a little later.",
    )


def _headers(rule: Rule, count: Count) -> Headers:
    return (
        ("RateLimit-Policy", f'"{rule.each}";q={rule.limit};w={_MINUTE}'),
        ("RateLimit-Limit", str(rule.limit)),
        ("RateLimit-Remaining", str(count.remaining)),
        ("RateLimit-Reset", str(math.ceil(count.reset_s))),
    )


class Places:
    """So many questions of each caller are answered at once, in this process.

    A stream that finds no place is refused, so that a page can say so; anything else waits its
    turn, which comes soon: whoever asked too often was refused before.
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
                cure="Wait until one has ended.",
            )
        async with places:
            yield
