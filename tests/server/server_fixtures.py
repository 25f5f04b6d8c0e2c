"""A real server with access control, on worker processes of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bythebook.access_stores import open_keys
from bythebook.config.settings import Settings
from bythebook.server.access import make_key, pepper_of
from tests.server.running_server import Running, free_port, running


@contextmanager
def serving(
    home: Path, *, workers: int, counts: str, database: str | None = None
) -> Iterator[Running]:
    """Run the small application of ``access_fixtures.py`` on real worker processes."""
    port = free_port()
    environ = {"BYTHEBOOK_HOME": str(home), "BYTHEBOOK_RATE_LIMIT_STORE": counts}
    environ |= {"DATABASE_URL": database} if database else {}
    command = [str(Path(sys.executable).with_name("granian")), "--interface", "asgi", "--factory"]
    command += ["--port", str(port), "--workers", str(workers), "--no-ws", "--log-level", "warning"]
    command += ["tests.server.access_fixtures:make"]
    url, log = f"http://127.0.0.1:{port}", home / f"{port}.log"
    with running(command, url, log, environ=environ) as server:
        _wait_until_all_answer(url, workers)
        yield server


def _wait_until_all_answer(url: str, workers: int) -> None:
    deadline, seen = time.monotonic() + 120, set()
    while len(seen) < workers:
        assert time.monotonic() < deadline, "a worker does not answer"
        seen.add(httpx.get(f"{url}/ready").json()["worker"])


async def new_key(settings: Settings) -> str:
    text, key = make_key(pepper_of(settings))
    store = open_keys(settings)
    await store.add(key)
    await store.close()
    return text
