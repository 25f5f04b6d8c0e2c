"""Connections opened by hand, for clients that do not behave as clients do."""

from __future__ import annotations

import asyncio
import json
import socket


async def opened(port: int, *, window: int | None = None) -> socket.socket:
    """A connection to this machine; with ``window``, one that takes in few bytes at a time."""
    line = socket.socket()
    line.setblocking(False)
    if window is not None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", port))
    return line


async def post(line: socket.socket, path: str, body: object) -> None:
    content = json.dumps(body).encode()
    await asyncio.get_running_loop().sock_sendall(line, head(path, len(content)) + content)


def head(path: str, length: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()
