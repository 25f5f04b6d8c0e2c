"""Close the connection of a client, found by its address.

ASGI has no message for this, and granian waits as long as the client keeps the connection open: a
response that nobody reads would hold its connection after everything else of it is released.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FILES = Path("/dev/fd")  # the open descriptors of this process
_AT_ONCE = struct.pack("ii", 1, 0)  # linger for 0 s: unsent data is discarded


def close_connection(client: tuple[str, int]) -> bool:
    """Close the connection from this address; return whether there was one."""
    for line in _connections():
        with line:
            if _peer(line) == client:
                with suppress(OSError):  # the client has just closed it
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                    line.shutdown(socket.SHUT_RDWR)
                return True
    return False


def _connections() -> Iterator[socket.socket]:
    for number in [int(file.name) for file in _FILES.iterdir()]:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                yield socket.socket(fileno=os.dup(number))
        except OSError:  # closed in the meantime
            continue


def _peer(line: socket.socket) -> tuple[str, int] | None:
    if line.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        host, port, *_ = line.getpeername()
    except OSError:  # a listening socket, or one just closed
        return None
    return host, port
