"""CORS middleware for an exact list of origins. Credentials are not allowed: no cookies exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.server.middleware.response_headers import edit_headers

Origins = Callable[[], Awaitable[frozenset[str]]]

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, "
    "X-API-Key, X-Request-Id",
    "Access-Control-Max-Age": "600",
}
_EXPOSED = (
    "Idempotent-Replayed, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, "
    "Retry-After, X-Degraded, X-Request-Id"
)
_VARY_PREFLIGHT = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"


class CorsMiddleware:
    """Compare the origin exactly with the allowed ones; "null" is never allowed."""

    def __init__(self, app: ASGIApp, *, origins: Origins) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin is not None and origin in await self._origins()
        asks_first = "access-control-request-method" in headers
        if scope["method"] == "OPTIONS" and origin is not None and asks_first:
            await send(_preflight(origin if allowed else None))
            await send({"type": "http.response.body", "body": b""})
            return

        def allow(response: MutableHeaders) -> None:
            response.add_vary_header("Origin")
            if allowed and origin is not None:
                response["Access-Control-Allow-Origin"] = origin
                response["Access-Control-Expose-Headers"] = _EXPOSED

        await self._app(scope, receive, edit_headers(send, allow))


def _preflight(origin: str | None) -> Message:
    answer = MutableHeaders({"Vary": _VARY_PREFLIGHT, "Content-Length": "0"})
    if origin is not None:
        answer["Access-Control-Allow-Origin"] = origin
        answer.update(_PREFLIGHT)
    status = 200 if origin is not None else 403
    return {"type": "http.response.start", "status": status, "headers": answer.raw}
