"""Requests that are given up at any instant leave no connection behind."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import httpx
import pytest

from bythebook.providers.http.transport import Transport

pytestmark = pytest.mark.loopback

_KEPT = httpx.Limits(max_connections=None, max_keepalive_connections=0)


class _Server:
    """Answers after a moment, and counts who is connected."""

    def __init__(self) -> None:
        self.connected = 0
        self.asked = 0

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.asked += 1
                await asyncio.sleep(random.random() / 50)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwhat\n")
                await writer.drain()
                await asyncio.sleep(random.random() / 50)
                writer.write(b"ever")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connected -= 1
            writer.close()


async def _ask_and_leave(client: httpx.AsyncClient, after_s: float) -> None:
    asking = asyncio.create_task(client.get("/"))
    await asyncio.sleep(after_s)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking


async def test_who_leaves_at_any_instant_leaves_no_connection_open() -> None:
    meeting = _Server()
    server = await asyncio.start_server(meeting.meet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with (
        server,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", transport=Transport(limits=_KEPT)
        ) as client,
    ):
        longest_s = 0.05
        while (before := meeting.asked) <= 100:
            instants = (random.random() * longest_s for _ in range(20))
            await asyncio.gather(*(_ask_and_leave(client, after_s) for after_s in instants))
            if meeting.asked == before:  # a busy machine: nobody was there long enough
                longest_s *= 2
        async with asyncio.timeout(60):
            while meeting.connected:  # noqa: ASYNC110 - nobody tells when a connection is gone
                await asyncio.sleep(0.1)
        assert (await client.get("/")).text == "what\never"
