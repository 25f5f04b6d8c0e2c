"""The fault proxy does what it is told, so that tests behind it can be trusted."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from reliability.proxy import Faults, FaultyLine, faulty_line

pytestmark = pytest.mark.loopback

_SAID = b"0123456789" * 10


@pytest.fixture
def line() -> Iterator[FaultyLine]:
    """Proxy before a server that sends a hundred bytes for any input."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_talk, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        with faulty_line(server.getsockname()) as line:
            yield line
        server.shutdown(socket.SHUT_RDWR)


def _talk(connection: socket.socket) -> None:
    with connection:
        while connection.recv(100):
            connection.sendall(_SAID)


def _heard(connection: socket.socket, *, within_s: float = 5.0) -> bytes:
    """Return what is received until complete or closed; raise TimeoutError otherwise."""
    connection.settimeout(within_s)
    heard = b""
    while len(heard) < len(_SAID) and (piece := connection.recv(100)):
        heard += piece
    return heard


def _asked(line: FaultyLine) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", line.port), timeout=5)
    connection.sendall(b"?")
    return connection


def test_a_line_without_faults_carries_everything(line: FaultyLine) -> None:
    with _asked(line) as connection:
        assert _heard(connection) == _SAID
        connection.sendall(b"?")
        assert _heard(connection) == _SAID
    assert line.connections == 1


def test_what_is_late_is_late_and_whole(line: FaultyLine) -> None:
    for faults in (Faults(latency_s=0.3), Faults(bytes_per_s=300)):
        line.faults, began = faults, time.monotonic()
        with _asked(line) as connection:
            assert _heard(connection) == _SAID
        assert time.monotonic() - began >= 0.29


def test_a_cut_is_a_clean_end(line: FaultyLine) -> None:
    line.faults = Faults(cut_after=7)
    with _asked(line) as connection:
        assert _heard(connection) == _SAID[:7]


def test_a_reset_is_none(line: FaultyLine) -> None:
    for after in (0, 7):
        line.faults = Faults(reset_after=after)
        with pytest.raises(OSError), _asked(line) as connection:
            _heard(connection)


def test_a_stall_begins_and_ends_on_a_line_that_is_open(line: FaultyLine) -> None:
    with _asked(line) as connection:
        assert _heard(connection) == _SAID
        line.faults = Faults(stall_after=7)
        connection.sendall(b"?")
        assert connection.recv(100) == _SAID[:7]
        with pytest.raises(TimeoutError):
            _heard(connection, within_s=0.3)
        line.faults = Faults()
        connection.settimeout(5)
        assert connection.recv(100) == _SAID[7:]
