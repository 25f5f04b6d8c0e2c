"""Access control of a server: API keys, rate limits, allowed origins and stored replies.

``wrap`` applies it to the requests, by the middleware.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.access_stores import AccessStores, open_access_stores
from bythebook.config.sections import AccessSettings
from bythebook.errors import ConfigurationError, ServiceError
from bythebook.server.middleware.api_keys import AuthenticationMiddleware, KeyRing, pepper_of
from bythebook.server.middleware.context import ContractRoute, RequestContextMiddleware, is_loopback
from bythebook.server.middleware.errors import ErrorMiddleware
from bythebook.server.middleware.idempotency import IdempotencyMiddleware
from bythebook.server.middleware.messages import BodyLimitMiddleware, without_body
from bythebook.server.middleware.origins import CorsMiddleware, HostMiddleware
from bythebook.server.middleware.rate_limit import Limiter, RateLimitMiddleware
from bythebook.server.routes import Fail

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
    if settings.access.keys != "auto":
        return settings.access.keys == "required"
    return is_reachable(settings)


def is_reachable(settings: Settings) -> bool:
    """Return whether other machines can reach the server, directly or through a proxy."""
    return not is_loopback(settings.server.host) or bool(settings.access.trusted_proxies)


@dataclass
class AccessControl:
    """The rules of access, and the stores behind them."""

    rules: AccessSettings
    stores: AccessStores
    needs_keys: bool
    pepper: bytes  # secret of all digests
    ring: KeyRing = field(init=False)

    def __post_init__(self) -> None:
        self.ring = KeyRing(self.stores.keys, self.pepper)

    async def origins(self) -> frozenset[str]:
        """Return the origins whose pages may use this server."""
        try:
            return frozenset(self.rules.origins) | await self.ring.origins()
        except ServiceError:
            return frozenset(self.rules.origins)

    async def close(self) -> None:
        for store in (self.stores.keys, self.stores.counter, self.stores.replies):
            await store.close()


def open_access(settings: Settings) -> AccessControl:
    required = needs_keys(settings)
    try:
        pepper = pepper_of(settings)
    except ConfigurationError:
        if required:
            raise
        pepper = secrets.token_bytes(32)  # without keys, no digest must outlive this process
    return AccessControl(settings.access, open_access_stores(settings), required, pepper)


def open_local_access() -> AccessControl:
    """Open access control for local use: no keys, no persistent counters or replies."""
    return AccessControl(
        AccessSettings(), open_access_stores(), needs_keys=False, pepper=secrets.token_bytes(32)
    )


# --- the order of the middleware ------------------------------------------------------------------


def wrap(
    app: ASGIApp,
    access: AccessControl,
    contracts: Sequence[ContractRoute],
    *,
    private: bool = False,
) -> ASGIApp:
    """Wrap the application in all middleware; a request passes the last one added first.

    ``private``: the server needs no keys, and only this machine can reach it.
    """
    rules, stores, pepper = access.rules, access.stores, access.pepper
    limiter = Limiter(stores.counter, pepper)
    inner: ASGIApp = IdempotencyMiddleware(app, replies=stores.replies, pepper=pepper)
    inner = RateLimitMiddleware(inner, rules=rules, limiter=limiter)
    inner = BodyLimitMiddleware(inner, largest=rules.body_bytes)
    inner = AuthenticationMiddleware(inner, ring=access.ring, required=access.needs_keys)
    if private:
        inner = HostMiddleware(inner, origins=rules.origins)
    inner = ErrorMiddleware(inner)
    inner = CorsMiddleware(inner, origins=access.origins)
    inner = RequestContextMiddleware(inner, contracts=contracts, proxies=rules.trusted_proxies)

    async def http_only(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
        elif scope["method"] == "HEAD":  # wherever GET is allowed
            scope["method"] = "GET"
            await inner(scope, receive, without_body(send))
        else:
            await inner(scope, receive, send)

    return http_only
