"""Close the connection of a client, found by its address.

ASGI has no message for this, and granian waits as long as the client keeps the connection open: a
response that nobody reads would hold its connection after everything else of it is released.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path

_FILES = Path("/dev/fd")  # the open descriptors of this process
_AT_ONCE = struct.pack("ii", 1, 0)  # linger for 0 s: unsent data is discarded


def close_connection(client: tuple[str, int]) -> bool:
    """Close the connection from this address; return whether there was one."""
    for number in [int(file.name) for file in _FILES.iterdir()]:
        # No socket, not connected, or closed in the meantime.
        with (
            suppress(OSError),
            socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as connection,
        ):
            if connection.getpeername()[:2] == client:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                connection.shutdown(socket.SHUT_RDWR)
                return True
    return False
