"""CORS middleware for an exact list of origins. Credentials are not allowed: no cookies exist."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.config.sections import is_origin
from bythebook.server.middleware.response_headers import edit_headers

_log = logging.getLogger(__name__)

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
_REFUSED = (
    "This origin is not allowed. Add it to access.origins (BYTHEBOOK_ORIGINS), or create a "
    "publishable key for it."
)
_LOG_EVERY_S = 60
_VARY_PREFLIGHT = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"


class CorsMiddleware:
    """Compare the origin exactly with the allowed ones; "null" is never allowed."""

    def __init__(self, app: ASGIApp, *, origins: Origins) -> None:
        self._app = app
        self._origins = origins
        self._logged_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin is not None and origin in await self._origins()
        asks_first = "access-control-request-method" in headers
        if scope["method"] == "OPTIONS" and origin is not None and asks_first:
            await send(_preflight(origin if allowed else None))
            await send(
                {"type": "http.response.body", "body": b"" if allowed else _REFUSED.encode()}
            )
            if not allowed:
                self._log_refused(origin)
            return

        def allow(response: MutableHeaders) -> None:
            response.add_vary_header("Origin")
            if allowed and origin is not None:
                response["Access-Control-Allow-Origin"] = origin
                response["Access-Control-Expose-Headers"] = _EXPOSED

        await self._app(scope, receive, edit_headers(send, allow))

    def _log_refused(self, origin: str) -> None:
        """Log a refused origin, at most one a minute: anybody can send any."""
        if is_origin(origin) and monotonic() - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = monotonic()
            _log.warning("a page of %s asked for access: %s", origin, _REFUSED)


def _preflight(origin: str | None) -> Message:
    answer = MutableHeaders({"Vary": _VARY_PREFLIGHT})
    if origin is not None:
        answer.update({"Access-Control-Allow-Origin": origin, "Content-Length": "0", **_PREFLIGHT})
    else:
        answer.update({"Content-Type": "text/plain", "Content-Length": str(len(_REFUSED))})
    status = 200 if origin is not None else 403
    return {"type": "http.response.start", "status": status, "headers": answer.raw}
