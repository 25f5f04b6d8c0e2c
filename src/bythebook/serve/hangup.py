"""A client's address in, its connection closed.

ASGI has no word for it, and granian waits for as long as the client holds the line: an answer that
nobody takes would keep its connection after everything else of it is gone.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FILES = Path("/dev/fd")  # of this process
_AT_ONCE = struct.pack("ii", 1, 0)  # what was not taken by now is thrown away


def hang_up(client: tuple[str, int]) -> bool:
    """Whether there was a connection from there, and it is closed."""
    for line in _connections():
        with line:
            if _peer(line) == client:
                with suppress(OSError):  # it has just gone by itself
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                    line.shutdown(socket.SHUT_RDWR)
                return True
    return False


def _connections() -> Iterator[socket.socket]:
    for number in [int(file.name) for file in _FILES.iterdir()]:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                yield socket.socket(fileno=os.dup(number))
        except OSError:  # closed meanwhile
            continue


def _peer(line: socket.socket) -> tuple[str, int] | None:
    if line.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        host, port, *_ = line.getpeername()
    except OSError:  # one that listens, or has just been closed
        return None
    return host, port
