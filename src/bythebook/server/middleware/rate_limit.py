"""Apply the rate limits of the contract, and a limit of concurrent requests per client."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.config.sections import AccessSettings
from bythebook.errors import RateLimited
from bythebook.interfaces.access import RateCount, RateCounter
from bythebook.server.middleware.api_keys import digest
from bythebook.server.middleware.context import counted_as
from bythebook.server.middleware.errors import send_error
from bythebook.server.middleware.messages import edit_headers, field_of, session_of

READER = "reader"  # the contract of the reader pages, which do not answer
_BY_SESSION = "envelope"  # the contract limited by session and address
_STREAM = "/chat/stream"
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class LimitRule:
    """Limit of requests per minute for one key, session or address."""

    kind: str  # "key", "session", "address" or "reader", shown to users
    caller: str  # its identifier
    limit: int


@dataclass(frozen=True, slots=True)
class LimitDecision:
    headers: dict[str, str]  # remaining quota, set on rejected requests, too
    error: RateLimited | None = None


class Limiter:
    """Apply all rules of a request; the headers report the one with the least quota left."""

    def __init__(self, counter: RateCounter, pepper: bytes) -> None:
        self._counter = counter
        self._pepper = pepper

    async def admit(self, rules: Sequence[LimitRule]) -> LimitDecision:
        """Count the request under its rules in order, up to the first that rejects it.

        The narrowest rule comes first: a request it rejects does not count for the wider ones.
        """
        tightest: tuple[LimitRule, RateCount] | None = None
        for rule in rules:
            key = digest(self._pepper, f"{rule.kind}:{rule.caller}")  # stores no address or session
            count = await self._counter.take(key, limit=rule.limit, seconds=_MINUTE)
            if not count.allowed:
                return LimitDecision(_headers(rule, count), _too_many(rule, count))
            if tightest is None or count.remaining < tightest[1].remaining:
                tightest = rule, count
        return LimitDecision({} if tightest is None else _headers(*tightest))


def _too_many(rule: LimitRule, count: RateCount) -> RateLimited:
    return RateLimited(
        f"{rule.limit} questions a minute are allowed for each {rule.kind}.",
        retry_after=max(1.0, count.reset_s),
        hint="Ask again a little later.",
    )


def _headers(rule: LimitRule, count: RateCount) -> dict[str, str]:
    return {
        "RateLimit-Policy": f'"{rule.kind}";q={rule.limit};w={_MINUTE}',
        "RateLimit-Limit": str(rule.limit),
        "RateLimit-Remaining": str(count.remaining),
        "RateLimit-Reset": str(math.ceil(count.reset_s)),
    }


class RequestSlots:
    """Limit of concurrent requests per client, in this process.

    A stream above the limit is rejected, so that a page can report it; other requests wait. The
    wait is short: clients above their rate limit have been rejected before.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def taken_by(self, caller: str, *, waits: bool) -> AsyncIterator[None]:
        slots = self._callers.setdefault(caller, asyncio.Semaphore(self._limit))
        if slots.locked() and not waits:
            raise RateLimited(
                f"{self._limit} streams may be open at once.",
                retry_after=1.0,
                hint="Wait until one has ended.",
            )
        async with slots:
            yield


class RateLimitMiddleware:
    """Reject requests above their limits; report the remaining quota in headers."""

    def __init__(self, app: ASGIApp, *, rules: AccessSettings, limiter: Limiter) -> None:
        self._app = app
        self._rules = rules
        self._limiter = limiter
        self._slots = RequestSlots(rules.streams_per_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        if state["contract"] is None or self._is_exempt(state):
            await self._app(scope, receive, send)
            return
        decision = await self._limiter.admit(self._rules_of(state))
        send = edit_headers(send, lambda headers: headers.update(decision.headers))
        if decision.error is not None:
            await send_error(decision.error, scope, receive, send)
            return
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        streamed = scope["path"] == _STREAM or field_of(state["body"], "stream") is True
        async with self._slots.taken_by(state["caller"], waits=not streamed):
            await self._app(scope, receive, send)

    def _is_exempt(self, state: dict[str, Any]) -> bool:
        address = state["address"]
        is_local = address is not None and address.is_loopback and state["owner"] is None
        return is_local and not self._rules.limit_loopback

    def _rules_of(self, state: dict[str, Any]) -> list[LimitRule]:
        """Return the limits: envelope by session and address, every other contract by client.

        Reading pages and searching as you type are no questions and have a limit of their own.
        """
        if state["contract"].name == READER:
            return [LimitRule("reader", state["caller"], self._rules.per_reader)]
        if state["contract"].name != _BY_SESSION:
            kind = "key" if state["owner"] else "address"
            return [LimitRule(kind, state["caller"], self._rules.per_key)]
        address = counted_as(state["address"])
        by_address = LimitRule("address", address, self._rules.per_address)
        session = session_of(state["body"])
        if session is None:
            return [by_address]
        caller = f"{state['owner']} {session}"
        return [LimitRule("session", caller, self._rules.per_session), by_address]
