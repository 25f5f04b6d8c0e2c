"""Connections opened by hand, for clients that do not behave as clients do."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Collection
from pathlib import Path

_SEGMENT = 536  # bytes, as over the worst of lines: the sender's buffer grows with it


async def opened(port: int, *, window: int | None = None) -> socket.socket:
    """A connection to this machine; with ``window``, one that takes in few bytes at a time."""
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


def unsent(clients: Collection[int]) -> int:
    """Bytes that the system keeps for those who do not take them, by their ports."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(
        int(queues.partition(":")[0], 16)
        for _, _, remote, _, queues, *_ in map(str.split, lines)
        if int(remote.rpartition(":")[2], 16) in clients
    )


def head(path: str, length: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()
