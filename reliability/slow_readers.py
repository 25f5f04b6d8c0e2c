"""Raw connections, for clients that misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_SEGMENT = 536  # bytes, as over the worst of lines: the sender's buffer grows with it

_ESTABLISHED = "01"  # in /proc/net/tcp


async def opened(port: int, *, window: int | None = None) -> socket.socket:
    """Open a connection to this machine; ``window`` limits its receive buffer."""
    line = socket.socket()
    line.setblocking(False)
    if window is not None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
    await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", port))
    return line


async def post(line: socket.socket, path: str, body: object) -> None:
    content = json.dumps(body).encode()
    await asyncio.get_running_loop().sock_sendall(line, head(path, len(content)) + content)


@dataclass(frozen=True)
class Held:
    """A connection as the kernel reports it on the server's side."""

    is_open: bool  # by the server; what was sent before it closed may still be on its way
    unsent: int  # bytes


def held(clients: Collection[int]) -> dict[int, Held]:
    """Return the open connections to these client ports."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {
        client: Held(state == _ESTABLISHED, int(queues.partition(":")[0], 16))
        for _, _, remote, state, queues, *_ in map(str.split, lines)
        if (client := int(remote.rpartition(":")[2], 16)) in clients
    }


def head(path: str, length: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()
