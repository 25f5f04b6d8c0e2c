"""Cancelled requests leave no open connection; compressed responses are not unpacked."""

from __future__ import annotations

import asyncio
import gzip
import random
from contextlib import suppress

import httpx
import pytest

from bythebook.providers.http.transport import Transport
from tests.providers.loopback import Loopback, head

pytestmark = pytest.mark.loopback

_KEPT = httpx.Limits(max_connections=None, max_keepalive_connections=0)


class _Server:
    """Server that answers after a short delay, and counts its connections."""

    def __init__(self) -> None:
        self.connected = 0
        self.asked = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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


async def _get_and_cancel(client: httpx.AsyncClient, after_s: float) -> None:
    asking = asyncio.create_task(client.get("/"))
    await asyncio.sleep(after_s)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking


async def test_a_request_cancelled_at_any_time_closes_its_connection() -> None:
    handler = _Server()
    server = await asyncio.start_server(handler.handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with (
        server,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", transport=Transport(limits=_KEPT)
        ) as client,
    ):
        longest_s = 0.05
        while (before := handler.asked) <= 100:
            instants = (random.random() * longest_s for _ in range(20))
            await asyncio.gather(*(_get_and_cancel(client, after_s) for after_s in instants))
            if handler.asked == before:  # a busy machine: nobody was there long enough
                longest_s *= 2
        async with asyncio.timeout(60):
            while handler.connected:  # noqa: ASYNC110 - nobody tells when a connection is gone
                await asyncio.sleep(0.1)
        assert (await client.get("/")).text == "what\never"


_CODINGS = ("gzip", "GZIP", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip")


@pytest.mark.parametrize("coding", _CODINGS)
@pytest.mark.parametrize("status", [200, 500])
async def test_a_compressed_response_is_not_unpacked(coding: str, status: int) -> None:
    content = [head(status, content_encoding=coding), gzip.compress(bytes(1 << 20))]
    with Loopback(lambda _: content) as provider:
        async with (
            httpx.AsyncClient(transport=Transport(limits=_KEPT)) as client,
            client.stream("POST", provider.url, json={}) as response,
        ):
            with pytest.raises(httpx.DecodingError, match="compressed"):
                [chunk async for chunk in response.aiter_bytes()]
    assert provider.requests[0].headers["accept-encoding"] == "identity"
