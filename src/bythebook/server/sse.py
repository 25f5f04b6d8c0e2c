"""Server-sent events of an answer: numbered, buffered for a while, resumable.

A separate task produces the events into a buffer, from which clients read. A client whose
connection broke can thus resume with ``Last-Event-ID`` without loss. When the last client of a
stream disconnects before its end, the task is cancelled. The last event always reports how the
stream ended: no exception reaches the server, which would end the response as if it were complete.

FastAPI's own generator routes are not used, only their encoding: they send a 200 before the
question is validated, hide exceptions of the generator, and have a fixed heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from cachetools import TTLCache
from fastapi import Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send

from bythebook.errors import BookError, InvalidInput, NotFound, ServiceError, Stopping

_log = logging.getLogger(__name__)

NamedEvent = tuple[str, BaseModel]  # name and payload
Events = AsyncGenerator[NamedEvent, None]
Fail = Callable[[BookError], NamedEvent]
Encode = Callable[[str, str, str], bytes]  # of the id, name and data of an event

MEDIA_TYPE = "text/event-stream"
UNREAD_S = 55  # how long a client may accept nothing; with cleanup, it is let go within a minute

_EVENT_ID = re.compile(r"([0-9a-f]{32})\.([0-9]{1,9})")
# Not line ends in server-sent events, but many clients split at them; JSON can escape them.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
_LAST = frozenset({"done", "error"})
_HEADERS = {
    "Cache-Control": "no-store, no-transform",  # no-transform: proxies must not compress it
    "X-Accel-Buffering": "no",  # nginx must not buffer events
}


def encode_named(event_id: str, name: str, data: str) -> bytes:
    """Encode an event with its name and id."""
    return format_sse_event(data_str=data, event=name, id=event_id)


def encode_data(_: str, name: str, data: str) -> bytes:
    """Encode data only, as OpenAI's clients expect; ``[DONE]`` marks a complete answer."""
    end = format_sse_event(data_str="[DONE]") if name == "done" else b""
    return format_sse_event(data_str=data) + end


class Stream:
    """Event buffer of one answer, shared by all its clients."""

    def __init__(self, events: Events, fail: Fail, owner: str | None, encode: Encode) -> None:
        self.id = uuid.uuid4().hex
        self.owner = owner
        self.ending: str | None = None  # name of the last event, once it was added
        self.size = 0  # in bytes
        self.clients = 0
        self._events = events
        self._fail = fail
        self._encode = encode
        self._encoded: list[bytes] = []
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._encoded)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    async def end(self, error: BookError) -> None:
        """End the stream with this error unless it has ended, and wait for its task.

        The task is dropped, as it holds references to all it worked on; the events are kept.
        """
        task, going_on = self._task, self.ending is None
        self.finish(error)
        if task is not None:
            if going_on:
                task.cancel()
            await asyncio.wait({task})
            self._task = None

    async def read(self, number: int, *, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
        """Yield all past and future events after the event with this number."""
        while True:
            while number < len(self._encoded):
                unread, number = self._encoded[number:], len(self._encoded)
                yield b"".join(unread)
            if self.ending is not None:
                return
            try:
                async with asyncio.timeout(heartbeat_s):
                    await self._more.wait()
            except TimeoutError:
                yield KEEPALIVE_COMMENT

    async def _follow(self) -> None:
        try:
            async with aclosing(self._events):
                async for event in self._events:
                    self._add(*event)
            self.finish(ServiceError("The answer broke off.", hint="Ask again."))
        except BookError as error:
            self.finish(error)
        except Exception:
            _log.exception("stream failed")
            self.finish(ServiceError("Something went wrong.", hint="Ask again."))

    def finish(self, error: BookError) -> None:
        """Add this error as the last event unless the stream has ended."""
        if self.ending is None:
            self._add(*self._fail(error))

    def _add(self, name: str, payload: BaseModel) -> None:
        if self.ending is not None:  # the client has the last event; drop later ones
            return
        number = len(self._encoded) + 1
        data = payload.model_dump_json().translate(_LINE_ENDS)
        encoded = self._encode(f"{self.id}.{number}", name, data)
        self._encoded.append(encoded)
        self.size += len(encoded)
        self.ending = name if name in _LAST else None
        self._more.set()
        self._more.clear()


class Streams:
    """Registry of this process's streams; finished ones are kept for ``keep_s`` seconds.

    At most ``most`` streams are open at once, and as many finished ones are kept, in total at most
    ``most_bytes``. A stream of another worker is not found here, and the client is told to ask
    again. A stream is given up when its client accepts nothing for ``send_timeout_s``.
    """

    def __init__(
        self,
        *,
        heartbeat_s: float = 15,
        send_timeout_s: float = UNREAD_S,
        keep_s: float = 120,
        most: int = 1000,
        most_bytes: int = 16 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.send_timeout_s = send_timeout_s
        self.heartbeat_s = heartbeat_s
        self._most = most
        self._open: dict[str, Stream] = {}
        smallest = most_bytes // most  # counted for each stream, so that there are at most ``most``
        self._finished: TTLCache[str, Stream] = TTLCache(
            most_bytes, keep_s, clock, getsizeof=lambda stream: max(stream.size, smallest)
        )
        self._stopping = False

    @property
    def open_count(self) -> int:
        return len(self._open)

    def begin(
        self, events: Events, *, fail: Fail, owner: str | None, encode: Encode = encode_named
    ) -> Response:
        """Start a stream; return the response with all its events."""
        if self._stopping:
            raise Stopping
        if len(self._open) >= self._most:
            raise ServiceError("Too many answers are being written at once.", hint="Ask again.")
        return _StreamResponse(self, Stream(events, fail, owner, encode), after=0)

    def resume(self, last_event_id: str, *, owner: str | None) -> Response:
        """Return a response with the events after the last one received."""
        match = _EVENT_ID.fullmatch(last_event_id)
        if match is None:
            raise InvalidInput(
                "Last-Event-ID names no event of a stream.", hint="Send the last id you received."
            )
        stream_id, number = match[1], int(match[2])
        stream = self._open.get(stream_id) or self._finished.get(stream_id)
        if stream is None or stream.owner != owner or number > len(stream):
            raise NotFound("This stream is not kept here (any more).", hint="Ask again.")
        return _StreamResponse(self, stream, after=number)

    async def stop(self) -> None:
        """End all streams with the error that the server stops; accept no new ones."""
        self._stopping = True
        await asyncio.gather(*(stream.end(Stopping()) for stream in list(self._open.values())))

    def enter(self, stream: Stream) -> None:
        stream.clients += 1
        if self._stopping:  # since ``begin`` or ``resume``
            stream.finish(Stopping())
        if stream.ending is None:
            self._open[stream.id] = stream
            stream.start()

    async def leave(self, stream: Stream) -> None:
        stream.clients -= 1
        if stream.clients or stream.id not in self._open:
            return
        await stream.end(ServiceError("The client disconnected before the end.", hint="Ask again."))
        if self._open.pop(stream.id, None) is not None:
            with suppress(ValueError):  # larger than the whole cache
                self._finished[stream.id] = stream


class _StreamResponse(StreamingResponse):
    """Response that sends a stream until it ends, or the client disconnects or stops reading."""

    def __init__(self, streams: Streams, stream: Stream, *, after: int) -> None:
        self._body = stream.read(after, heartbeat_s=streams.heartbeat_s)
        super().__init__(self._body, media_type=MEDIA_TYPE, headers=_HEADERS)
        self._streams = streams
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._streams.send_timeout_s):
                await send(message)

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
            await self._body.aclose()
            # Before ``leave``, so that a stream abandoned by its client has no ending yet.
            scope.setdefault("state", {})["stream_ending"] = self._stream.ending
            await self._streams.leave(self._stream)
