"""The door of a real server: a thousand readers at once, one worker and two."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from bythebook.assemble import open_keys
from bythebook.serve.keys import make_key, pepper_of
from bythebook.settings import Settings, load_settings
from tests.databases import address as address_of
from tests.samples import ROOT
from tests.servers import free_ports, running_redis, wait_until_open

pytestmark = pytest.mark.real

_READERS = 1000


@contextmanager
def serving(home: Path, *, workers: int, counts: str, database: str | None = None) -> Iterator[str]:
    """The small application of ``doorway.py`` behind the real door, on real worker processes."""
    (port,) = free_ports(1)
    environment = {**os.environ, "BYTHEBOOK_HOME": str(home), "BYTHEBOOK_COUNTS": counts}
    environment |= {"DATABASE_URL": database} if database else {}
    command = [str(Path(sys.executable).with_name("granian")), "--interface", "asgi", "--factory"]
    command += ["--port", str(port), "--workers", str(workers), "--no-ws", "--log-level", "warning"]
    process = subprocess.Popen(
        [*command, "tests.serve.doorway:make"], cwd=ROOT, env=environment, start_new_session=True
    )
    try:
        wait_until_open(process, port)
        address = f"http://127.0.0.1:{port}"
        _wait_until_all_answer(address, workers)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _wait_until_all_answer(address: str, workers: int, seconds: float = 30) -> None:
    deadline, seen = time.monotonic() + seconds, set()
    while len(seen) < workers:
        assert time.monotonic() < deadline, "a worker does not answer"
        try:
            seen.add(httpx.get(f"{address}/health").json()["worker"])
        except httpx.TransportError:
            time.sleep(0.1)


async def _key(settings: Settings) -> str:
    text, key = make_key(pepper_of(settings))
    store = open_keys(settings)
    await store.add(key)
    await store.close()
    return text


@pytest.mark.parametrize(
    ("workers", "counts"),
    [(1, "memory"), (1, "database"), (2, "database"), (2, "redis"), (2, "postgres")],
)
async def test_exactly_a_hundred_of_a_thousand_are_allowed(
    tmp_path: Path, workers: int, counts: str, request: pytest.FixtureRequest
) -> None:
    url = address_of("postgres", tmp_path, request) if counts == "postgres" else None
    text = await _key(load_settings({"home": tmp_path, "database_url": url}, environ={}))
    with ExitStack() as stack:
        if counts == "redis":
            counts = stack.enter_context(running_redis(tmp_path))
        counts = "database" if url else counts
        server = serving(tmp_path, workers=workers, counts=counts, database=url)
        address = stack.enter_context(server)
        start = time.monotonic()
        answers = await asyncio.gather(*(_ask(address, text) for _ in range(_READERS)))
        assert time.monotonic() - start < 60, "the first ones left the window meanwhile"
    assert Counter(status for status, _ in answers) == {200: 100, 429: _READERS - 100}
    served = {body["worker"] for status, body in answers if status == 200}
    assert len(served) == workers, "not every worker was asked"


async def _ask(address: str, text: str) -> tuple[int, dict[str, object]]:
    """A connection of its own, opened by hand: a client's pool would let them in one by one."""
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = ["POST /chat/run HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {text}"]
    lines += ["Content-Length: 0", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(body)


async def test_a_repeated_request_is_answered_by_one_worker_alone(tmp_path: Path) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    with serving(tmp_path, workers=2, counts="database") as address:
        async with httpx.AsyncClient(base_url=address, headers=key, timeout=60) as client:
            answers = await asyncio.gather(
                *(client.post("/chat/run", json={"message": "?"}) for _ in range(50))
            )
            changed = await client.post("/chat/run", json={"message": "!"})
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    replayed = sum("idempotent-replayed" in answer.headers for answer in answers)
    assert (replayed, changed.status_code) == (49, 422)


async def test_a_revoked_key_is_refused_within_a_second(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path}, environ={})
    text = await _key(settings)
    store = open_keys(settings)
    with serving(tmp_path, workers=2, counts="database") as address:
        async with httpx.AsyncClient(base_url=address, headers={"X-API-Key": text}) as client:
            assert (await client.post("/chat/run")).status_code == 200
            (key,) = await store.all()
            await store.revoke(key.id, key.created_at)
            await asyncio.sleep(1)
            refused = [(await client.post("/chat/run")).status_code for _ in range(10)]
    await store.close()
    assert refused == [401] * 10


async def test_a_large_body_is_refused_on_the_wire(tmp_path: Path) -> None:
    async def pieces() -> object:
        for _ in range(40):
            yield b"x" * 1024

    with serving(tmp_path, workers=1, counts="memory") as address:
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            whole = await client.post("/chat/run", content=b"x" * 40_000)
            chunked = await client.post("/chat/run", content=pieces())  # type: ignore[arg-type]
            assert (whole.status_code, chunked.status_code) == (413, 413)
            assert (await client.post("/chat/run", content=b"x")).status_code == 200
