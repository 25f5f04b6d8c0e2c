"""Requests in, responses out, as httpx has it; and a request may be given up at any instant.

httpcore 1.0 loses a connection whose request is cancelled after it stands and before the first byte
is sent: its pool neither uses nor closes it again, and one that is limited runs dry. A request that
is given up in that gap is carried over it and cancelled behind it, where httpcore closes what it
opened. Readers leave often enough for it to matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx

_OPENED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
_GOES_ON = ("start_tls.started", "send_request_headers.started")


class Transport(httpx.AsyncHTTPTransport):
    """Connections that are closed when their request is given up, whenever that is."""

    def __init__(
        self, *, limits: httpx.Limits, verify: bool = True, trust_env: bool = False
    ) -> None:
        super().__init__(verify=verify, trust_env=trust_env, limits=limits)
        self._given_up: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        crossing = _Crossing()
        request.extensions = {**request.extensions, "trace": crossing.note}
        sending = asyncio.create_task(super().handle_async_request(request))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            crossing.is_given_up = True
            if not crossing.is_in_gap:
                sending.cancel()
            settling = asyncio.create_task(_settle(sending))
            self._given_up.add(settling)  # a task that nobody holds may be collected
            settling.add_done_callback(self._given_up.discard)
            raise

    async def aclose(self) -> None:
        await asyncio.gather(*self._given_up)
        await super().aclose()


class _Crossing:
    """Where a request is, by what httpcore says of it."""

    def __init__(self) -> None:
        self.is_in_gap = False
        self.is_given_up = False

    async def note(self, event: str, _: Mapping[str, object]) -> None:
        if event.endswith(_OPENED):
            self.is_in_gap = True
        elif event.endswith(_GOES_ON):
            self.is_in_gap = False
            if self.is_given_up:
                raise asyncio.CancelledError


async def _settle(sending: asyncio.Task[httpx.Response]) -> None:
    """What comes all the same is not wanted any more."""
    await asyncio.wait([sending])
    if not sending.cancelled() and sending.exception() is None:
        await sending.result().aclose()
