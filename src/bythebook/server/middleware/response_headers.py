"""Change the headers of a response on its way to the client."""

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
