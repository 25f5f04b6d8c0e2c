"""An answer's events in, server-sent events out: numbered, kept for a while, resumable.

What is told is made by a task of its own and kept; readers follow what is kept. So a reader whose
connection broke can come back with ``Last-Event-ID`` and miss nothing. When the last reader of a
stream leaves before its end, the task is cancelled. Whatever happens, the last event says how it
ended: nothing raised here ever reaches the server, which would make a clean end of it.

FastAPI's own generator routes are not used: they have sent a 200 before the question is looked
at, hide what a generator raises, and their heartbeat cannot be set. Their encoding is.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from fastapi import Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send

from bythebook.errors import BookError, InvalidInput, NotFound, ServiceError, Stopping
from bythebook.serve.hangup import hang_up

_log = logging.getLogger(__name__)

Told = tuple[str, BaseModel]  # an event's name and what it says
Fail = Callable[[BookError], Told]
Write = Callable[[str, str, str], bytes]  # an event's id, its name and its data, as they are sent

MEDIA_TYPE = "text/event-stream"

_EVENT_ID = re.compile(r"([0-9a-f]{32})\.([0-9]{1,9})")
# No line ends for server-sent events, but for many clients; JSON can do without them.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
_LAST = frozenset({"done", "error"})
_HEADERS = {
    "Cache-Control": "no-store, no-transform",  # no-transform: nobody on the way may compress it
    "X-Accel-Buffering": "no",  # nginx passes on each event as it comes
}


def named(event_id: str, name: str, data: str) -> bytes:
    """An event that can be told from others, and found again."""
    return format_sse_event(data_str=data, event=name, id=event_id)


def bare(_: str, name: str, data: str) -> bytes:
    """Data alone, as OpenAI's clients read it; ``[DONE]`` says that the answer is whole."""
    end = format_sse_event(data_str="[DONE]") if name == "done" else b""
    return format_sse_event(data_str=data) + end


class Stream:
    """The events of one answer, for everyone who reads them."""

    def __init__(
        self,
        telling: AsyncGenerator[Told, None],
        fail: Fail,
        owner: str | None,
        write: Write = named,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.owner = owner
        self.ending: str | None = None  # the name of its last event, once it has been told
        self.size = 0  # in bytes
        self.readers = 0
        self._telling = telling
        self._fail = fail
        self._write = write
        self._events: list[bytes] = []
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._events)

    @property
    def ended(self) -> bool:
        return self.ending is not None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    async def end(self, error: BookError) -> None:
        """End it now, if it has not ended, and wait until no work is left."""
        going_on = not self.ended
        self.finish(error)
        if self._task is None:
            return
        if going_on:
            self._task.cancel()
        await asyncio.wait({self._task})

    def settle(self) -> None:
        """Once it has ended, keep its events alone: a task remembers what it worked on."""
        self._task = None

    async def read(self, number: int, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
        """What was and will be told after the event with this number."""
        while True:
            while number < len(self._events):
                told, number = self._events[number:], len(self._events)
                yield b"".join(told)
            if self.ended:
                return
            try:
                async with asyncio.timeout(heartbeat_s):
                    await self._more.wait()
            except TimeoutError:
                yield KEEPALIVE_COMMENT

    async def _follow(self) -> None:
        try:
            async with aclosing(self._telling):
                async for told in self._telling:
                    self._add(told)
            self.finish(ServiceError("The answer broke off.", cure="Ask again."))
        except BookError as error:
            self.finish(error)
        except Exception:
            _log.exception("a stream broke off")
            self.finish(ServiceError("Something went wrong.", cure="Ask again."))

    def finish(self, error: BookError) -> None:
        """Its last event is this error, unless it has had its last one."""
        if not self.ended:
            self._add(self._fail(error))

    def _add(self, told: Told) -> None:
        if self.ended:  # the reader was told so; what comes now comes too late
            return
        name, body = told
        number = len(self._events) + 1
        data = body.model_dump_json().translate(_LINE_ENDS)
        event = self._write(f"{self.id}.{number}", name, data)
        self._events.append(event)
        self.size += len(event)
        self.ending = name if name in _LAST else None
        self._more.set()
        self._more.clear()


class Streams:
    """All streams of this process, the finished ones for ``keep_s`` seconds.

    ``most`` streams are open at once, and what is kept is bounded in number and bytes: the oldest
    finished ones are forgotten first. A stream that another worker keeps is not found here, and
    the reader is told to ask again. Who is there and takes nothing is let go after ``patience_s``.
    """

    def __init__(
        self,
        *,
        heartbeat_s: float = 15,
        patience_s: float = 55,  # and with all that follows from it, gone within a minute
        keep_s: float = 120,
        most: int = 1000,
        most_bytes: int = 16 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience_s = patience_s
        self._heartbeat_s = heartbeat_s
        self._keep_s = keep_s
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._open: dict[str, Stream] = {}
        self._finished: dict[str, tuple[Stream, float]] = {}  # with when it ended, oldest first
        self._stopping = False

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def kept_count(self) -> int:
        return len(self._finished)

    def begin(
        self,
        telling: AsyncGenerator[Told, None],
        *,
        fail: Fail,
        owner: str | None,
        write: Write = named,
    ) -> Response:
        """The response that tells it all, from the first event on."""
        if self._stopping:
            raise Stopping
        if len(self._open) >= self._most:
            raise ServiceError("Too many answers are being written at once.", cure="Ask again.")
        return self._response(Stream(telling, fail, owner, write), after=0)

    def resume(self, last_event_id: str, *, owner: str | None) -> Response:
        """The response that tells what came after the event that was seen last."""
        match = _EVENT_ID.fullmatch(last_event_id)
        if match is None:
            raise InvalidInput(
                "Last-Event-ID names no event of a stream.", cure="Send the last id you received."
            )
        self._forget()
        name, number = match[1], int(match[2])
        stream = self._open.get(name) or self._finished.get(name, (None,))[0]
        if stream is None or stream.owner != owner or number > len(stream):
            raise NotFound("This stream is not kept here (any more).", cure="Ask again.")
        return self._response(stream, after=number)

    async def stop(self) -> None:
        """Tell every reader that the server stops; begin nothing new."""
        self._stopping = True
        await asyncio.gather(*(stream.end(Stopping()) for stream in list(self._open.values())))

    def _response(self, stream: Stream, *, after: int) -> Response:
        return _StreamResponse(self, stream, stream.read(after, heartbeat_s=self._heartbeat_s))

    def enter(self, stream: Stream) -> None:
        stream.readers += 1
        if self._stopping:  # since it was asked for
            stream.finish(Stopping())
        if not stream.ended:
            self._open[stream.id] = stream
            stream.start()

    async def leave(self, stream: Stream) -> None:
        stream.readers -= 1
        if stream.readers or stream.id not in self._open:
            return
        await stream.end(ServiceError("The reader left before the end.", cure="Ask again."))
        stream.settle()
        if self._open.pop(stream.id, None) is not None:
            self._finished[stream.id] = (stream, self._clock())
            self._forget()

    def _forget(self) -> None:
        now, size = self._clock(), sum(stream.size for stream, _ in self._finished.values())
        for name, (stream, ended) in list(self._finished.items()):
            within = len(self._finished) <= self._most and size <= self._most_bytes
            if within and now - ended <= self._keep_s:
                return
            del self._finished[name]
            size -= stream.size


class _StreamResponse(StreamingResponse):
    """Tells a stream until it ends, or the client leaves or stops reading."""

    def __init__(self, streams: Streams, stream: Stream, told: AsyncGenerator[bytes, None]) -> None:
        super().__init__(told, media_type=MEDIA_TYPE, headers=_HEADERS)
        self._told = told
        self._streams = streams
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self._streams.patience_s):
                    await send(message)
            except TimeoutError:
                # Over HTTP/2, others may share the connection; and a stream can end without it.
                if scope["http_version"].startswith("1") and scope.get("client"):
                    host, port = scope["client"]
                    hang_up((host, int(port)))  # granian has it as text
                raise

        self._streams.enter(self._stream)
        work = {
            asyncio.create_task(self.stream_response(send_in_time)),
            asyncio.create_task(self.listen_for_disconnect(receive)),
        }
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            await self._told.aclose()
            # Before the reader is gone, so that a stream he left has no ending yet.
            scope.setdefault("state", {})["stream_ending"] = self._stream.ending
            await self._streams.leave(self._stream)
