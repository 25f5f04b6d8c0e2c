"""Real servers for the tests: Qdrant, one node or three that keep two copies; Redis; any other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bythebook.providers.qdrant.server import ServerGenerationStore

_BINARY = (
    Path(os.environ.get("BYTHEBOOK_QDRANT", Path.home() / ".cache" / "bythebook" / "qdrant"))
    / "qdrant"
)


@dataclass
class Service:
    """A server with its children: they are started, stopped and killed together."""

    command: Sequence[str]
    folder: Path
    port: int
    environment: Mapping[str, str] | None = None
    is_ready: Callable[[], bool] = lambda: True
    process: subprocess.Popen[bytes] = field(init=False)

    def restart(self) -> None:
        self.start()
        self.wait()

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = _start(self.command, self.folder, self.environment)

    def wait(self, seconds: float = 120) -> None:
        wait_until_open(self.process, self.port, seconds)
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the server does not become ready"
            time.sleep(0.1)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


@contextmanager
def running_service(service: Service) -> Iterator[Service]:
    service.start()
    try:
        service.wait()
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()


@dataclass
class Node:
    url: str
    peer: str
    folder: Path
    command: Sequence[str]
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=60)

    def restart(self) -> None:
        self.process = _start(self.command, self.folder)
        _wait_until_ready(self)


@pytest.fixture(scope="session")
def qdrant_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    with running_server(tmp_path_factory.mktemp("qdrant")) as node:
        yield [node]


@pytest.fixture(scope="session")
def qdrant_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    with running_cluster(tmp_path_factory.mktemp("qdrant-cluster")) as nodes:
        yield nodes


def new_shelf(
    nodes: Sequence[Node], *, dimension: int, cached: int = 0, **settings: Any
) -> ServerGenerationStore:
    """An empty shelf, under a name of its own; two copies of everything where there are nodes.

    The deadline is wide where a test is not about it: the machine may be busy.
    """
    from bythebook.providers.qdrant.nodes import Server
    from bythebook.providers.qdrant.server import ServerGenerationStore

    known = {"replication": min(2, len(nodes)), "timeout_s": 5.0, **settings}
    server = Server(tuple(node.url for node in nodes), **known)
    name = f"book-{uuid.uuid4().hex[:8]}"
    return ServerGenerationStore(server, name, dimension=dimension, cached=cached)


@asynccontextmanager
async def server_shelf(
    nodes: Sequence[Node], *, dimension: int, **settings: Any
) -> AsyncIterator[ServerGenerationStore]:
    """A shelf on servers that other tests use too: it leaves nothing behind."""
    shelf = new_shelf(nodes, dimension=dimension, **settings)
    try:
        yield shelf
    finally:
        for _ in range(2):
            await shelf.discard(keep=[])
        await shelf.close()


@contextmanager
def running_server(folder: Path, *, api_key: str | None = None) -> Iterator[Node]:
    with _running(folder, api_key=api_key) as node:
        _wait_until_ready(node)
        yield node


@contextmanager
def running_cluster(folder: Path, size: int = 3) -> Iterator[list[Node]]:
    with ExitStack() as stack:
        nodes: list[Node] = []
        for number in range(size):
            first = nodes[0].peer if nodes else None
            member = _running(folder / str(number), in_cluster=True, bootstrap=first)
            nodes.append(stack.enter_context(member))
            _wait_until_ready(nodes[-1])
        for node in nodes:
            _wait_until_joined(node, size)
        yield nodes


@contextmanager
def _running(
    folder: Path,
    *,
    api_key: str | None = None,
    in_cluster: bool = False,
    bootstrap: str | None = None,
) -> Iterator[Node]:
    if not _BINARY.is_file():
        pytest.skip("needs a Qdrant server: sh .ci/install")
    folder.mkdir(parents=True, exist_ok=True)
    http, grpc, p2p = free_ports(3)
    peer = f"http://127.0.0.1:{p2p}"
    service = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "api_key": api_key}
    config = {
        "log_level": "WARN",
        "telemetry_disabled": True,
        "service": service,
        "storage": {name: str(folder / name) for name in ("storage_path", "snapshots_path")},
        "cluster": {"enabled": in_cluster, "p2p": {"port": p2p}},
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    command = [str(_BINARY), "--config-path", str(folder / "config.yaml"), "--disable-telemetry"]
    command += ["--uri", peer] if in_cluster else []
    command += ["--bootstrap", bootstrap] if bootstrap else []
    url = f"http://127.0.0.1:{http}"
    node = Node(url, peer, folder, command, _start(command, folder))
    try:
        yield node
    finally:
        node.kill()


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl+C is for us, and we end it."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=environment, start_new_session=True
        )


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _wait_until_ready(node: Node, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        assert node.process.poll() is None, "the Qdrant server ended while starting"
        try:
            with urllib.request.urlopen(f"{node.url}/readyz", timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline, "the Qdrant server does not become ready"
            time.sleep(0.1)


def _wait_until_joined(node: Node, size: int, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with urllib.request.urlopen(f"{node.url}/cluster", timeout=5) as response:
            cluster = json.load(response)["result"]
        if len(cluster["peers"]) == size and cluster["raft_info"]["leader"]:
            return
        assert time.monotonic() < deadline, "the nodes do not find each other"
        time.sleep(0.1)


def redis_service(folder: Path) -> Service:
    """An empty Redis that keeps nothing on disk."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("needs Debian's redis-server: sh .ci/install")
    (port,) = free_ports(1)
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", "."]
    return Service(command, folder, port)


@contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """The address of an empty Redis."""
    with running_service(redis_service(folder)) as redis:
        yield f"redis://127.0.0.1:{redis.port}/0"


def wait_until_open(process: subprocess.Popen[bytes], port: int, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        assert process.poll() is None, "the server ended while starting"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline, "the server does not open its port"
            time.sleep(0.05)
