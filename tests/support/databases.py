"""A real PostgreSQL for the tests: Debian's, in a temporary folder, as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

POSTGRES = pytest.param("postgres", marks=pytest.mark.real)

_BINARIES = os.environ.get("BYTHEBOOK_POSTGRES")  # the folder that holds initdb and postgres


@dataclass
class Postgres:
    folder: Path
    port: int
    binaries: Path
    process: subprocess.Popen[bytes] | None = None

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://book@127.0.0.1:{self.port}/{name}"

    def new_database(self) -> str:
        """The address of an empty database that no other test uses."""
        import psycopg

        name = f"book_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def start(self) -> None:
        command: list[str | Path] = [self.binaries / "postgres", "-D", self.folder / "data"]
        command += ["-k", "", "-h", "127.0.0.1", "-p", str(self.port)]
        # No test pulls the plug of the machine, so what the kernel has is safe.
        command += ["-c", "fsync=off", "-c", "max_connections=60"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **_unprivileged()
            )
        self._wait_until_ready()

    restart = start

    def stop(self) -> None:
        """At once, and clients are told."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        self._end(signal.SIGKILL)
        # A new one starts when the last child of the old one has noticed and gone.
        time.sleep(0.2)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It takes connections and questions, and answers none."""
        everyone = self._everyone()
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in everyone:
                os.kill(pid, signal.SIGCONT)

    def _everyone(self) -> list[int]:
        assert self.process is not None
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def _end(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(timeout=60)
        self.process = None

    def _wait_until_ready(self, seconds: float = 120) -> None:
        import psycopg

        deadline = time.monotonic() + seconds
        while True:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            try:
                with psycopg.connect(self.url(), connect_timeout=5):
                    return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL does not become ready"
                time.sleep(0.05)


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    binaries = _binaries()
    if binaries is None:
        pytest.skip("needs PostgreSQL: sh .ci/install")
    folder = Path(tempfile.mkdtemp(prefix="bythebook-postgres-"))
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, *_user())
    server = Postgres(folder, _free_port(), binaries)
    make = [binaries / "initdb", "-D", folder / "data", "-U", "book", "-A", "trust", "-E", "UTF8"]
    make += ["--no-locale", "--no-sync"]
    try:
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **_unprivileged())
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def address(kind: str, folder: Path, request: pytest.FixtureRequest) -> str | None:
    """Of an empty database: SQLite in the folder, or PostgreSQL."""
    if kind == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


def _binaries() -> Path | None:
    if _BINARIES:
        return Path(_BINARIES)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    return found[-1].parent if found else None


def _version(initdb: Path) -> int:
    return int(initdb.parts[-3])


def _user() -> tuple[str, int]:
    names = {entry.pw_name: entry.pw_gid for entry in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    return name, names[name]


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    name, group = _user()
    return {"user": name, "group": group, "extra_groups": [], "cwd": "/"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
