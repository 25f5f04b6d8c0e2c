"""Identify the API key of a request; reject requests without one if keys are required."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.errors import NotAllowed
from bythebook.server.middleware import addresses
from bythebook.server.middleware.api_keys import KeyRing, is_ours

if TYPE_CHECKING:
    from bythebook.interfaces.access import ApiKey


class AuthenticationMiddleware:
    def __init__(self, app: ASGIApp, *, ring: KeyRing, required: bool) -> None:
        self._app = app
        self._ring = ring
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        key = await self._key(scope) if state["contract"] else None
        address = addresses.counted_as(state["address"])
        state["owner"] = key.id if key else None
        state["is_author"] = key is not None and key.is_author
        # Clients with a shared (publishable) key or without one are told apart by address.
        shared = key is None or key.origins
        state["caller"] = f"{key.id if key else 'open'} {address if shared else ''}"
        await self._app(scope, receive, send)

    async def _key(self, scope: Scope) -> ApiKey | None:
        headers = Headers(scope=scope)
        text = _presented(headers)
        required = self._required and not scope["state"]["contract"].is_public
        if not required and not is_ours(text):
            return None  # keys are optional: ignore foreign credentials
        if not text:
            raise NotAllowed(
                "An API key is needed.", hint="Send it as Authorization: Bearer or as X-API-Key."
            )
        key = await self._ring.holder(text)
        if key is None:
            raise NotAllowed(
                "This API key is not known or has been revoked.", hint="Ask for a new one."
            )
        if key.origins and headers.get("origin") not in key.origins:
            raise NotAllowed(
                "This key holds only on its own page.", hint="Use a secret key outside of it."
            )
        if key.origins and scope["method"] != "POST":
            raise NotAllowed("This key may only ask.", hint="Use a secret key, on a server.")
        return key


def _presented(headers: Headers) -> str:
    scheme, _, text = headers.get("authorization", "").partition(" ")
    bearer = text.strip() if scheme.lower() == "bearer" else ""
    return bearer or headers.get("x-api-key", "").strip()
