"""Start the scaled-out deployment of ``deploy/`` on this machine, from local binaries.

python -m tools.local_deployment [DOCS] [--servers 2] [--folder FOLDER]

Two servers of the book as on two hosts, PostgreSQL, Redis, three Qdrant nodes that keep two copies,
and nginx in front, each a process of its own on a free port of loopback. DOCS (the sample book by
default) is ingested; then the address and a key are printed. Ctrl+C ends everything. It needs
``sh setup.sh dev``; the binaries come with ``sh .ci/install``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.databases import running_postgres
from tests.support.samples import ROOT, SAMPLE_BOOK
from tests.support.servers import (
    Service,
    free_ports,
    redis_service,
    running_cluster,
    running_service,
)

from bythebook.access_stores import open_keys
from bythebook.config.settings import Settings, load_settings
from bythebook.server.access import make_key, pepper_of

DEPLOY = ROOT / "deploy"
PROGRAM = str(Path(sys.executable).with_name("bythebook"))
NODES = 3
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Part(Protocol):
    """One process of the deployment, with its children."""

    def kill(self) -> None: ...

    def restart(self) -> None: ...


@dataclass(frozen=True)
class Deployment:
    """Everything that runs, by name; ``environment`` is what a command needs to reach it."""

    url: str
    parts: Mapping[str, Part]
    servers: tuple[Service, ...]
    environment: Mapping[str, str]
    folder: Path

    @property
    def settings(self) -> Settings:
        return load_settings(environ=self.environment, directory=self.folder)

    async def new_key(self) -> str:
        text, key = make_key(pepper_of(self.settings))
        keys = open_keys(self.settings)
        await keys.add(key)
        await keys.close()
        return text


@contextmanager
def running_deployment(folder: Path, docs: Path, *, servers: int = 2) -> Iterator[Deployment]:
    _nginx()  # it comes last: who has none should not have to wait to be told
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        nodes = stack.enter_context(running_cluster(folder / "qdrant", NODES))
        redis = stack.enter_context(running_service(redis_service(folder / "redis")))
        environment = {
            **_quiet(os.environ),
            "BYTHEBOOK_HOME": str(folder / "home"),
            "BYTHEBOOK_PEPPER": secrets.token_hex(32),
            "BYTHEBOOK_RATE_LIMIT_STORE": f"redis://127.0.0.1:{redis.port}/0",
            "BYTHEBOOK_TRUSTED_PROXIES": "127.0.0.1/32",
            "DATABASE_URL": postgres.new_database(),
            "QDRANT_URL": ",".join(node.url for node in nodes),
        }
        shutil.copy(DEPLOY / "bythebook.toml", folder)
        _ingest(docs, folder, environment)
        answering = [_server(folder, n, environment) for n in range(1, servers + 1)]
        for server in answering:
            server.start()  # together: each takes a second or two
            stack.callback(_stop, server)
        for server in answering:
            server.wait()
        nginx = stack.enter_context(running_service(nginx_service(folder / "nginx", answering)))
        parts: dict[str, Part] = {
            **{f"server {n}": server for n, server in enumerate(answering, 1)},
            "Redis": redis,
            "PostgreSQL": postgres,
            **{f"Qdrant {n}": node for n, node in enumerate(nodes, 1)},
            "nginx": nginx,
        }
        url = f"http://127.0.0.1:{nginx.port}"
        yield Deployment(url, parts, tuple(answering), environment, folder)


def _quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """Without settings of another book."""
    ours = ("BYTHEBOOK_", "QDRANT_", "DATABASE_URL")
    return {name: value for name, value in environ.items() if not name.startswith(ours)}


def _ingest(docs: Path, folder: Path, environment: Mapping[str, str]) -> None:
    command = [PROGRAM, "ingest", str(docs.resolve())]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def _server(folder: Path, number: int, environment: Mapping[str, str]) -> Service:
    """One host: its own folder and port; what it shares with the others is in the environment."""
    home = folder / f"server-{number}"
    home.mkdir(parents=True)
    shutil.copy(DEPLOY / "bythebook.toml", home)
    (port,) = free_ports(1)
    own = {**environment, "BYTHEBOOK_HOME": str(home / "home"), "BYTHEBOOK_PORT": str(port)}
    return Service([PROGRAM, "serve"], home, port, own, is_ready=lambda: _answers(port))


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return True
    except OSError:
        return False


def _nginx() -> str:
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin")
    return program or pytest.skip("needs nginx: sh .ci/install")


def nginx_service(folder: Path, servers: list[Service]) -> Service:
    """The settings that are deployed, with our ports in them."""
    folder.mkdir()
    (port,) = free_ports(1)
    settings = (DEPLOY / "nginx.conf").read_text("utf-8")
    assert "listen 8080;" in settings
    listening = settings.replace("listen 8080;", f"listen 127.0.0.1:{port};")
    (folder / "nginx.conf").write_text(listening)
    lines = [f"server 127.0.0.1:{s.port} max_fails=1 fail_timeout=2s;" for s in servers]
    upstream = "\n    ".join(["zone book 64k;", *lines, "keepalive 32;"])
    (folder / "upstream.conf").write_text(f"upstream book {{\n    {upstream}\n}}\n")
    command = [_nginx(), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    return Service(command, folder, port)


def _stop(server: Service) -> None:
    if server.process.poll() is None:
        server.stop()


def _end(*_: object) -> None:
    """Once: whoever presses Ctrl+C again while everything ends, leaves nothing behind."""
    for each in _ENDS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _empty(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty: name another folder.")
    return folder.resolve()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("docs", type=Path, nargs="?", default=SAMPLE_BOOK / "docs")
    parser.add_argument("--servers", type=int, default=2, help="servers of the book")
    parser.add_argument("--folder", type=Path, help="keep what they write there; by default not")
    given = parser.parse_args()
    for each in _ENDS:  # also where a shell that started us in the background ignores them
        signal.signal(each, _end)
    try:
        with ExitStack() as stack:
            made = given.folder or stack.enter_context(tempfile.TemporaryDirectory())
            folder = _empty(Path(made))
            deployment = stack.enter_context(
                running_deployment(folder, given.docs, servers=given.servers)
            )
            key = asyncio.run(deployment.new_key())
            print(f"The book is served at {deployment.url} with the key {key}")
            print("Ctrl+C stops everything.", flush=True)
            signal.pause()
    except pytest.skip.Exception as missing:
        raise SystemExit(f"This {missing}") from None
    except subprocess.CalledProcessError as failed:
        raise SystemExit(failed.returncode) from None  # it has said why
    except KeyboardInterrupt:
        print("Everything has ended.")


if __name__ == "__main__":
    main()
