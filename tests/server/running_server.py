"""Servers in processes of their own, and nginx in front of one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.samples import ROOT


@dataclass(frozen=True)
class Running:
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> tuple[int, float]:
        """SIGTERM it: its exit code, and how many seconds that took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60), time.monotonic() - began

    def kill(self) -> None:
        """All of its processes, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def interrupt(self) -> int:
        """Ctrl+C, as a terminal sends it, to every process at once."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(timeout=60)


@contextmanager
def slow_server(
    folder: Path, *, workers: int = 1, descriptors: int | None = None
) -> Iterator[Running]:
    """Run the slow server; ``descriptors`` is how many files each process may open, which has to
    raise its limit from half of that by itself."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    limits = f"ulimit -S -n {descriptors // 2}; ulimit -H -n {descriptors}" if descriptors else ":"
    limited = ["sh", "-c", f'{limits}; exec "$@"', "sh"]
    command = [*limited, sys.executable, "-m", "tests.server.slow_server", str(folder), str(port)]
    with running([*command, str(workers)], f"http://127.0.0.1:{port}", folder / "log") as server:
        yield server


PROGRAM = str(Path(sys.executable).with_name("bythebook"))


def ingest(folder: Path, home: Path, *, environ: Mapping[str, str] | None = None) -> None:
    command = [PROGRAM, "ingest", str(folder), "--home", str(home)]
    subprocess.run(command, check=True, capture_output=True, env=_with(environ))


@contextmanager
def book_server(
    home: Path, log: Path, *, workers: int = 1, environ: Mapping[str, str] | None = None
) -> Iterator[Running]:
    port = free_port()
    command = [PROGRAM, "serve", "--home", str(home), "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with running([*command, "--workers", str(workers)], url, log, environ=environ) as server:
        yield server


@contextmanager
def nginx_before(server: Running, folder: Path) -> Iterator[str]:
    """nginx with nothing set but where to pass requests on to."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin")
    if program is None:
        pytest.skip("needs nginx: sh .ci/install")
    folder.mkdir()
    port = free_port()
    paths = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}}\n"
        f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port};\n"
        f"location / {{ proxy_pass {server.url}; }} }} }}\n"
    )
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    url = f"http://127.0.0.1:{port}"
    with running([*command, "-e", str(folder / "error.log")], url, folder / "log"):
        yield url


@contextmanager
def running(
    command: Sequence[str], url: str, log: Path, *, environ: Mapping[str, str] | None = None
) -> Iterator[Running]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=file, start_new_session=True, env=_with(environ)
        )
    server = Running(url, process, log)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        if process.poll() is None:
            server.stop()


def _with(environ: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(environ or {})}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(server: Running, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        assert server.process.poll() is None, server.log.read_text()
        try:
            with urllib.request.urlopen(f"{server.url}/ready", timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline, f"{server.url} does not become ready"
            time.sleep(0.05)
