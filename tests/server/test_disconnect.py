"""A connection is closed by the address of its client."""

from __future__ import annotations

import socket

import pytest

from bythebook.server.disconnect import close_connection

pytestmark = pytest.mark.loopback


def test_a_client_is_hung_up_on_and_nobody_else() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as one,
        socket.create_connection(listener.getsockname()) as other,
    ):
        (ours, _), (others, _) = listener.accept(), listener.accept()
        with ours, others:
            ours.sendall(b"what nobody takes")
            assert close_connection(one.getsockname())
            assert ours.recv(1) == b""
            others.sendall(b"!")
            assert other.recv(1) == b"!"


def test_who_is_not_there_cannot_be_hung_up_on() -> None:
    assert not close_connection(("127.0.0.1", 1))
