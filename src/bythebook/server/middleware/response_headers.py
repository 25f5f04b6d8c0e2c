"""Change the headers of a response on its way to the client, or leave out its body."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send


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
