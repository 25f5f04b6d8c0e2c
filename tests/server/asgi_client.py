"""ASGI client without a socket: sees each chunk as it is sent, and can disconnect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message


@dataclass(frozen=True)
class Event:
    name: str
    body: dict[str, Any]
    id: str

    @property
    def number(self) -> int:
        return int(self.id.partition(".")[2])


def events_of(text: str) -> list[Event]:
    """The complete events of a stream; comments are left out."""
    blocks = [block for block in text.split("\n\n")[:-1] if not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [Event(each["event"], json.loads(each["data"]), each["id"]) for each in fields]


@dataclass
class Exchange:
    """A request and the response received so far."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    finished: bool = False  # the server said that there is no more to come
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def events(self) -> list[Event]:
        return events_of(self.text)

    async def until(self, text: str, *, times: int = 1) -> None:
        """Wait until the text has arrived this many times."""
        while self.text.count(text) < times:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), 10)

    def leave(self) -> None:
        self._left.set()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.text += message["body"].decode()
            self.finished = not message.get("more_body", False)
        self._more.set()

    async def disconnect(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}


def _scope(**fields: Any) -> dict[str, Any]:
    """The scope of a POST request."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/chat/run",
        "query_string": b"",
        "root_path": "",
        "headers": [],
        "client": ("198.51.100.9", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    return scope | fields


@asynccontextmanager
async def open_exchange(
    app: ASGIApp, path: str, body: object, headers: dict[str, str] | None = None
) -> AsyncIterator[Exchange]:
    """Send a POST; when the block ends, the application has finished with it."""
    received = Exchange()
    given = {"content-type": "application/json", **(headers or {})}
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    scope = _scope(path=path, headers=raw, client=("127.0.0.1", 1))
    unread = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> Message:
        return unread.pop() if unread else await received.disconnect()

    task = asyncio.create_task(_call(app, scope, receive, received))
    try:
        yield received
        await asyncio.wait_for(task, 10)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _call(app: ASGIApp, scope: Any, receive: Any, received: Exchange) -> None:
    await app(scope, receive, received.send)


async def fetch(
    app: ASGIApp, path: str, body: object, headers: dict[str, str] | None = None
) -> Exchange:
    """Send a POST and read the whole response."""
    async with open_exchange(app, path, body, headers) as received:
        pass
    return received


async def ask(app: Any, messages: Sequence[Message], **scope: Any) -> list[Message]:
    """One request, message by message; after the last one, the connection stays silent."""
    left = list(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def send(message: Message) -> None:
        sent.append(message)

    await app(_scope(**scope), receive, send)
    return sent
