"""What web pages may ask of the server: CORS for an exact list of origins, and host names."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from urllib.parse import urlsplit

from fastapi.responses import PlainTextResponse, Response
from starlette.datastructures import Headers
from starlette.middleware import cors
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.config.sections import is_origin
from bythebook.errors import WrongHost
from bythebook.server.middleware import read_address

_log = logging.getLogger(__name__)

_ACCEPTED = (
    *("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"),
    *("X-API-Key", "X-Request-Id"),
)
_EXPOSED = (
    *("Idempotent-Replayed", "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining"),
    *("RateLimit-Reset", "Retry-After", "X-Degraded", "X-Request-Id"),
)
_REFUSED = (
    "This origin is not allowed. Add it to access.origins (BYTHEBOOK_ORIGINS), or create a "
    "publishable key for it."
)
_LOG_EVERY_S = 60
_HOST = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(?::\d+)?", re.IGNORECASE)  # name or address, port


class CorsMiddleware(cors.CORSMiddleware):
    """CORS for origins that change, as publishable keys do; "null" is never one.

    Credentials are not allowed: no cookies exist.
    """

    def __init__(self, app: ASGIApp, *, origins: Callable[[], Awaitable[frozenset[str]]]) -> None:
        methods = ("GET", "POST", "DELETE")
        super().__init__(
            app, allow_methods=methods, allow_headers=_ACCEPTED, expose_headers=_EXPOSED
        )
        self._origins = origins
        self._logged_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "origin" in Headers(scope=scope):
            self.allow_origins = await self._origins()
        await super().__call__(scope, receive, send)

    def preflight_response(self, request_headers: Headers) -> Response:
        origin = request_headers["origin"]
        if self.is_allowed_origin(origin):
            return super().preflight_response(request_headers)
        # At most once a minute: anybody can send any origin.
        if is_origin(origin) and monotonic() - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = monotonic()
            _log.warning("a page of %s asked for access: %s", origin, _REFUSED)
        return PlainTextResponse(_REFUSED, 403, headers={"Vary": self.preflight_headers["Vary"]})


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
