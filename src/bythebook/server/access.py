"""Access control around the application: authentication, rate limits and body size limits.

Each middleware is a small ASGI application; ``AccessControl.wrap`` sets their order. A rejected
request gets an error response in the format of its contract.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.config.settings import AccessSettings as Rules
from bythebook.errors import ConfigurationError, ServiceError
from bythebook.server.middleware.addresses import is_loopback
from bythebook.server.middleware.api_keys import KeyRing, pepper_of
from bythebook.server.middleware.cors import Cors
from bythebook.server.middleware.idempotency import Idempotency
from bythebook.server.middleware.rate_limit import Limiter
from bythebook.server.middleware.stack import (
    Authentication,
    BodyLimit,
    ContractRoute,
    ErrorResponses,
    RateLimiting,
    RequestContext,
)
from bythebook.server.routes import Fail
from bythebook.wiring import AccessStores, open_access_stores

if TYPE_CHECKING:
    from bythebook.config.settings import Settings


def contracts_of(
    routers: Sequence[APIRouter], *, is_public: bool = False
) -> Iterator[ContractRoute]:
    """Yield the routes that have a contract; health, metrics and static pages have none."""
    for router in routers:
        for route in router.routes:
            fail: Fail | None = getattr(route, "fail", None)
            if fail is not None:
                yield ContractRoute(str(router.tags[0]), route, fail, is_public)


def needs_keys(settings: Settings) -> bool:
    """Return whether API keys are required: by default, if other machines can reach the server."""
    if settings.door.keys != "auto":
        return settings.door.keys == "required"
    return is_reachable(settings)


def is_reachable(settings: Settings) -> bool:
    """Return whether other machines can reach the server, directly or through a proxy."""
    return not is_loopback(settings.server.host) or bool(settings.door.trusted_proxies)


class AccessControl:
    def __init__(
        self, rules: Rules, stores: AccessStores, *, needs_keys: bool, pepper: bytes
    ) -> None:
        self._rules = rules
        self._stores = stores
        self._needs_keys = needs_keys
        self._pepper = pepper
        self._ring = KeyRing(stores.keys, pepper)

    def wrap(self, app: ASGIApp, contracts: Sequence[ContractRoute]) -> ASGIApp:
        """Wrap the application in all middleware; a request passes the last one added first."""
        limiter = Limiter(self._stores.counter, self._pepper)
        inner: ASGIApp = Idempotency(app, replies=self._stores.replies, pepper=self._pepper)
        inner = RateLimiting(inner, rules=self._rules, limiter=limiter)
        inner = BodyLimit(inner, largest=self._rules.body_bytes)
        inner = Authentication(inner, ring=self._ring, required=self._needs_keys)
        inner = ErrorResponses(inner)
        inner = Cors(inner, origins=self._origins)
        inner = RequestContext(inner, contracts=contracts, proxies=self._rules.trusted_proxies)

        async def door(scope: Scope, receive: Receive, send: Send) -> None:
            await (inner if scope["type"] == "http" else app)(scope, receive, send)

        return door

    async def close(self) -> None:
        for store in (self._stores.keys, self._stores.counter, self._stores.replies):
            await store.close()

    async def _origins(self) -> frozenset[str]:
        try:
            return frozenset(self._rules.origins) | await self._ring.origins()
        except ServiceError:
            return frozenset(self._rules.origins)


def open_door(settings: Settings) -> AccessControl:
    required = needs_keys(settings)
    try:
        pepper = pepper_of(settings)
    except ConfigurationError:
        if required:
            raise
        pepper = secrets.token_bytes(32)  # without keys, no digest must outlive this process
    stores = open_access_stores(settings)
    return AccessControl(settings.door, stores, needs_keys=required, pepper=pepper)


def open_here() -> AccessControl:
    """Open access control for local use: no keys, no persistent counters or replies."""
    return AccessControl(
        Rules(), open_access_stores(), needs_keys=False, pepper=secrets.token_bytes(32)
    )
