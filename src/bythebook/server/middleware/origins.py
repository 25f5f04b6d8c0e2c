"""What web pages may ask of the server: CORS for an exact list of origins, and host names.

Credentials are not allowed: no cookies exist.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.config.sections import is_origin
from bythebook.errors import WrongHost
from bythebook.server.middleware.context import read_address
from bythebook.server.middleware.messages import edit_headers

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
_HOST = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(?::\d+)?", re.IGNORECASE)  # name or address, port
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


# --- host names -----------------------------------------------------------------------------------


class HostMiddleware:
    """Let requests to a private server pass if they name an IP address, localhost or an origin.

    A web page can let its own name lead to this machine (DNS rebinding). The browser then takes
    this server, which needs no key, for the page's own, but still sends that name.

    Nobody can make an IP address lead elsewhere, and allowed origins have access anyway.
    """

    def __init__(self, app: ASGIApp, *, origins: Iterable[str]) -> None:
        self._app = app
        self._names = {urlsplit(origin).hostname for origin in origins} | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = scope["state"]["address"]
        hosts = Headers(scope=scope).getlist("host")
        if address is not None and address.is_loopback and not all(map(self._is_own, hosts)):
            scope["state"]["contract"] = None  # no contract has an error for this
            raise WrongHost(
                "This server answers only to localhost and its IP address.",
                hint="For another name, add its origin to access.origins; behind a proxy, set "
                "access.trusted_proxies.",
            )
        await self._app(scope, receive, send)

    def _is_own(self, host: str) -> bool:
        form = _HOST.fullmatch(host)
        name = form[1].lower().removesuffix(".") if form else ""
        is_known = name in self._names or name.endswith(".localhost")
        return is_known or (form is not None and read_address(form[1]) is not None)
