"""httpx transport whose requests can be cancelled at any time without leaking connections.

httpcore 1.0 leaks a connection whose request is cancelled while connecting or before the first byte
is sent: its pool neither reuses nor closes it, and a limited pool is exhausted. A request cancelled
in that gap runs on past it and is cancelled there, where httpcore closes the connection.
Cancelling the close of a response leaks it too, so the close continues in the background. Clients
disconnect often enough for this to matter.

Responses are not compressed and not longer than ``MOST_BYTES``: a few KB can unpack to gigabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

import httpx

_CONNECTS = ("connect_tcp.started", "connect_unix_socket.started")
_SENDS = "send_request_headers.started"
MOST_BYTES = 1 << 26  # 64 MiB: 256 vectors of 3072 numbers take 15
_LONGEST_S = 2.0  # for a connection whose request was cancelled


class Transport(httpx.AsyncHTTPTransport):
    """Transport that closes the connection of a cancelled request, whenever it is cancelled."""

    def __init__(
        self, *, limits: httpx.Limits, verify: bool = True, trust_env: bool = False
    ) -> None:
        super().__init__(verify=verify, trust_env=trust_env, limits=limits)
        self._ending: set[asyncio.Task[None]] = set()  # an unreferenced task may be collected

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["Accept-Encoding"] = "identity"
        crossing = _Crossing()
        request.extensions = {**request.extensions, "trace": crossing.note}
        sending = asyncio.create_task(super().handle_async_request(request))
        try:
            response = await asyncio.shield(sending)
        except asyncio.CancelledError:
            crossing.is_given_up = True
            if crossing.is_in_gap:
                asyncio.get_running_loop().call_later(_LONGEST_S, sending.cancel)
            else:
                sending.cancel()
            self._end(_settle(sending))
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Stream(response.stream, self._end)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            response.stream.left = -1
        return response

    async def aclose(self) -> None:
        await asyncio.gather(*self._ending)
        await super().aclose()

    def _end(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        ending = asyncio.create_task(work)
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending


class _Stream(httpx.AsyncByteStream):
    """Response body whose close always completes, even if the caller is cancelled."""

    def __init__(
        self,
        body: httpx.AsyncByteStream,
        end: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
    ) -> None:
        self._body = body
        self._end = end
        self.left = MOST_BYTES  # negative: nothing may be read

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.left < 0:
            raise httpx.DecodingError("the response is compressed")
        async for chunk in self._body:
            self.left -= len(chunk)
            if self.left < 0:
                raise httpx.DecodingError("the response is too long")
            yield chunk

    async def aclose(self) -> None:
        await asyncio.shield(self._end(self._body.aclose()))


class _Crossing:
    """Progress of a request, from the trace events of httpcore."""

    def __init__(self) -> None:
        self.is_in_gap = False
        self.is_given_up = False

    async def note(self, event: str, _: Mapping[str, object]) -> None:
        if event.endswith(_CONNECTS):
            self.is_in_gap = True
        elif event.endswith(_SENDS):
            self.is_in_gap = False
            if self.is_given_up:
                raise asyncio.CancelledError


async def _settle(sending: asyncio.Task[httpx.Response]) -> None:
    """Wait for a cancelled request, and close the response if there still is one."""
    await asyncio.wait([sending])
    if not sending.cancelled() and sending.exception() is None:
        await sending.result().aclose()
