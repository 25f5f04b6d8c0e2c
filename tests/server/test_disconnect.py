"""A connection is closed by the address of its client."""

from __future__ import annotations

import socket

import pytest

from bythebook.server.disconnect import close_connection

pytestmark = pytest.mark.loopback


def test_only_the_connection_of_the_client_is_closed() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as one,
        socket.create_connection(listener.getsockname()) as other,
    ):
        (ours, _), (others, _) = listener.accept(), listener.accept()
        with ours, others:
            ours.sendall(b"unread")
            assert close_connection(one.getsockname())
            assert ours.recv(1) == b""
            others.sendall(b"!")
            assert other.recv(1) == b"!"


def test_no_connection_of_the_client_is_reported() -> None:
    assert not close_connection(("127.0.0.1", 1))
