"""Check the host name of requests to a private server, which needs no key.

A web page can let its own name lead to this machine (DNS rebinding). The browser then takes this
server for the page's own, but still sends that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.errors import WrongHost
from bythebook.server.middleware.addresses import read_address

_HOST = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(?::\d+)?", re.IGNORECASE)  # name or address, port


class HostMiddleware:
    """Let requests from this machine pass if they name an IP address, localhost or an origin.

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
