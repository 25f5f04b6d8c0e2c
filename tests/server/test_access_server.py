"""Access control of a real server: keys and bodies, with one worker and with two."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from bythebook.access_stores import open_keys
from bythebook.config.settings import load_settings
from tests.server.server_fixtures import new_key, serving

pytestmark = pytest.mark.loopback


async def test_revoked_key_is_rejected_within_a_second(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path}, environ={})
    text = await new_key(settings)
    store = open_keys(settings)
    with serving(tmp_path, workers=2, counts="database") as server:
        async with httpx.AsyncClient(
            base_url=server.url, timeout=120, headers={"X-API-Key": text}
        ) as client:
            assert (await client.post("/chat/run")).status_code == 200
            (key,) = await store.all()
            await store.revoke(key.id, key.created_at)
            await asyncio.sleep(1)
            refused = [(await client.post("/chat/run")).status_code for _ in range(10)]
    await store.close()
    assert refused == [401] * 10


async def test_large_body_is_rejected_by_a_real_server(tmp_path: Path) -> None:
    async def pieces() -> object:
        for _ in range(160):
            yield b"x" * 1024

    with serving(tmp_path, workers=1, counts="memory") as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
            whole = await client.post("/chat/run", content=b"x" * 160_000)
            chunked = await client.post("/chat/run", content=pieces())  # type: ignore[arg-type]
            assert (whole.status_code, chunked.status_code) == (413, 413)
            assert (await client.post("/chat/run", content=b"x")).status_code == 200
