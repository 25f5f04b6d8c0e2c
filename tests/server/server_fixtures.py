"""A real server with access control, on worker processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bythebook.access_stores import open_keys
from bythebook.config.settings import Settings
from bythebook.server.access import make_key, pepper_of
from tests.support.samples import ROOT
from tests.support.servers import free_ports, wait_until_open


@dataclass(frozen=True)
class Serving:
    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """All of its processes, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)


@contextmanager
def serving(
    home: Path, *, workers: int, counts: str, database: str | None = None
) -> Iterator[Serving]:
    """Run the small application of ``access_fixtures.py`` on real worker processes."""
    (port,) = free_ports(1)
    environment = {**os.environ, "BYTHEBOOK_HOME": str(home), "BYTHEBOOK_RATE_LIMIT_STORE": counts}
    environment |= {"DATABASE_URL": database} if database else {}
    command = [str(Path(sys.executable).with_name("granian")), "--interface", "asgi", "--factory"]
    command += ["--port", str(port), "--workers", str(workers), "--no-ws", "--log-level", "warning"]
    process = subprocess.Popen(
        [*command, "tests.server.access_fixtures:make"],
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )
    try:
        wait_until_open(process, port)
        address = f"http://127.0.0.1:{port}"
        _wait_until_all_answer(address, workers)
        yield Serving(address, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def _wait_until_all_answer(address: str, workers: int, seconds: float = 120) -> None:
    deadline, seen = time.monotonic() + seconds, set()
    while len(seen) < workers:
        assert time.monotonic() < deadline, "a worker does not answer"
        try:
            seen.add(httpx.get(f"{address}/health").json()["worker"])
        except httpx.TransportError:
            time.sleep(0.1)


async def new_key(settings: Settings) -> str:
    text, key = make_key(pepper_of(settings))
    store = open_keys(settings)
    await store.add(key)
    await store.close()
    return text
