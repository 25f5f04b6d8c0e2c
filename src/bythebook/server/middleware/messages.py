"""Read the whole body of a request first, with a timeout and a size limit; edit responses."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.errors import InvalidInput, TooLarge

_TIMEOUT_S = 7.0  # for a body; with headers, ``drain`` and error response, under ten
_LINGER_S, _LINGER_BYTES = 1.0, 1024 * 1024  # read from a too large body before rejecting it
_BODILESS = ("GET", "HEAD", "OPTIONS")


class BodyLimitMiddleware:
    def __init__(self, app: ASGIApp, *, largest: int, timeout_s: float = _TIMEOUT_S) -> None:
        self._app = app
        self._largest = largest
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in _BODILESS:
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        try:
            async with asyncio.timeout(self._timeout_s):
                if announced.isdecimal() and int(announced[:20]) > self._largest:
                    raise self._too_large()
                body = await self._read(receive)
        except TimeoutError:
            raise InvalidInput("The body did not arrive in time.", hint="Send it again.") from None
        if body is None:  # the client has disconnected, or its chunks cannot be parsed
            raise InvalidInput("The body is incomplete or malformed.", hint="Send it again.")
        scope["state"]["body"] = body
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._largest:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The body has more than {self._largest} bytes.", hint="Ask with less text."
        )


async def drain(receive: Receive) -> bool:
    """Read on for a while, as a client that is still sending would miss the error response.

    Return whether the body has ended, so that the connection can be used again.
    """
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while dropped < _LINGER_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return True
    return False


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that yields the whole body, then the messages of the connection."""
    pieces = [body]

    async def replay() -> Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        return await receive()

    return replay


def field_of(body: bytes, name: str) -> object:
    """Return a field of a JSON object; None if the body is not one or lacks the field."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields.get(name) if isinstance(fields, dict) else None


def session_of(body: bytes) -> uuid.UUID | None:
    """Return the ``session_id`` of a body if it is a UUID v4."""
    try:
        session = uuid.UUID(str(field_of(body, "session_id")))
    except ValueError:
        return None
    return session if session.version == 4 else None


# --- responses ------------------------------------------------------------------------------------


def edit_headers(send: Send, edit: Callable[[MutableHeaders], None]) -> Send:
    """Return a ``send`` that applies ``edit`` to the headers before they are sent."""

    async def send_edited(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": list(message.get("headers", ()))}
            edit(MutableHeaders(scope=message))
        await send(message)

    return send_edited


def without_body(send: Send) -> Send:
    """Return a ``send`` for the response to HEAD: the headers of GET, and no body."""

    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if "body" in message else message)

    return send_head
