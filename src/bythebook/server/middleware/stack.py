"""The order of the access middleware around the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.server.middleware.auth import AuthenticationMiddleware
from bythebook.server.middleware.body import BodyLimitMiddleware
from bythebook.server.middleware.context import ContractRoute, RequestContextMiddleware
from bythebook.server.middleware.cors import CorsMiddleware
from bythebook.server.middleware.errors import ErrorMiddleware
from bythebook.server.middleware.host import HostMiddleware
from bythebook.server.middleware.idempotency import IdempotencyMiddleware
from bythebook.server.middleware.rate_limit import Limiter, RateLimitMiddleware
from bythebook.server.middleware.response_headers import without_body

if TYPE_CHECKING:
    from bythebook.server.access import AccessControl


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
