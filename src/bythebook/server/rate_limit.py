"""Apply the rate limits of the contract, and a limit of concurrent requests per client."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.config.sections import AccessSettings
from bythebook.errors import RateLimited
from bythebook.interfaces.access import RateCount, RateCounter
from bythebook.server.access import digest
from bythebook.server.middleware import READER, counted_as
from bythebook.server.requests import field_of, session_of

_BY_SESSION = "envelope"  # the contract limited by session and address
_STREAM = "/chat/stream"
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class LimitRule:
    """Limit of requests per minute for one key, session or address."""

    kind: str  # "key", "session", "address" or "reader", shown to users
    caller: str  # its identifier
    limit: int

    def headers(self, count: RateCount) -> dict[str, str]:
        """Return what is left; rejected requests have these headers, too."""
        return {
            "RateLimit-Policy": f'"{self.kind}";q={self.limit};w={_MINUTE}',
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(count.remaining),
            "RateLimit-Reset": str(math.ceil(count.reset_s)),
        }


class RateLimitMiddleware:
    """Reject requests above their limits; report the remaining quota in headers.

    A stream above the limit of concurrent requests of a client, which each process counts for
    itself, is rejected, so that a page can report it; other requests wait. The wait is short:
    clients above their rate limit have been rejected before.
    """

    def __init__(
        self, app: ASGIApp, *, rules: AccessSettings, counter: RateCounter, pepper: bytes
    ) -> None:
        self._app = app
        self._rules = rules
        self._counter = counter
        self._pepper = pepper
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        if state["contract"] is None or self._is_exempt(state):
            await self._app(scope, receive, send)
            return
        await self._admit(state)
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        streamed = scope["path"] == _STREAM or field_of(state["body"], "stream") is True
        async with self._slot(state["caller"], waits=not streamed):
            await self._app(scope, receive, send)

    def _is_exempt(self, state: dict[str, Any]) -> bool:
        address = state["address"]
        is_local = address is not None and address.is_loopback and state["owner"] is None
        return is_local and not self._rules.limit_loopback

    async def _admit(self, state: dict[str, Any]) -> None:
        """Count the request under its rules in order, up to the first that rejects it.

        The narrowest rule comes first: a request it rejects does not count for the wider ones. The
        headers report the rule with the least quota left.
        """
        least = math.inf
        for rule in self._rules_of(state):
            key = digest(self._pepper, f"{rule.kind}:{rule.caller}")  # stores no address or session
            count = await self._counter.take(key, limit=rule.limit, seconds=_MINUTE)
            if count.remaining < least or not count.allowed:
                least = count.remaining
                state["headers"] |= rule.headers(count)
            if not count.allowed:
                raise RateLimited(
                    f"{rule.limit} questions a minute are allowed for each {rule.kind}.",
                    retry_after=max(1.0, count.reset_s),
                    hint="Ask again a little later.",
                )

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

    @asynccontextmanager
    async def _slot(self, caller: str, *, waits: bool) -> AsyncIterator[None]:
        limit = self._rules.streams_per_key
        slots = self._slots.setdefault(caller, asyncio.Semaphore(limit))
        if slots.locked() and not waits:
            raise RateLimited(
                f"{limit} streams may be open at once.",
                retry_after=1.0,
                hint="Wait until one has ended.",
            )
        async with slots:
            yield
