"""Run the application with granian, in one or several worker processes."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.book import Book
from bythebook.config.sections import ServerSettings
from bythebook.config.settings import Settings
from bythebook.errors import ConfigurationError
from bythebook.server.access import open_access
from bythebook.server.app import create_app
from bythebook.server.observability import configuration
from bythebook.server.sse import UNREAD_S

_KILL_AFTER_S = 13  # longer than a drain takes, shorter than operators wait
_ORPHANED_S = 0.5  # how often a worker checks whether its parent is alive
_DESCRIPTORS = Path("/dev/fd")  # those that this process has open
_HEAD_MS = 5000  # for the head of a request, as in deploy/nginx.conf
_CONNECTIONS = 8192  # of a worker; measured: an idle one takes 2.6 KB, so all take 21 MB


OpenBook = Callable[[Settings], Book]


def run(settings: Settings, *, open_book: OpenBook = Book) -> None:
    server = settings.server
    descriptors = raise_descriptor_limit()
    Granian(
        "bythebook.server.runner:worker",
        interface=Interfaces.ASGI,
        address=server.host,
        port=server.port,
        workers=server.workers,
        respawn_failed_workers=True,
        log_level=LogLevels.warning,
        log_dictconfig=configuration(),
        websockets=False,
        workers_kill_timeout=_KILL_AFTER_S,
        # Neither HTTP/2 nor the detection of the protocol has a timeout: silent connections stay.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=_HEAD_MS),
        # Others wait to be accepted. Half of the descriptors are left for files and databases.
        backpressure=min(_CONNECTIONS, descriptors // 2),
    ).serve(target_loader=partial(worker, settings, open_book), wrap_loader=False)


def raise_descriptor_limit() -> int:
    """Raise the limit of open files to the largest that this process may set; return it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return _CONNECTIONS * 2 if most == resource.RLIM_INFINITY else most


def worker(settings: Settings, open_book: OpenBook) -> ASGIApp:
    """Create the ASGI application of a worker process."""
    app = create_app(open_book(settings), settings, open_access(settings))

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            stop = _stopper(app.state.lifecycle.drain)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
            _close_unread_connections()
            watch = asyncio.create_task(_stop_with_parent(os.getppid(), stop))
            try:
                await app(scope, receive, send)
            finally:
                watch.cancel()
        else:
            await app(scope, receive, send)

    return serve


def _close_unread_connections() -> None:
    """Have the kernel close each connection whose client accepts nothing for a minute.

    Granian waits for ever, also for the end of a response that was sent already. Connections
    inherit this option from the socket that accepts them; systems other than Linux have none.
    """
    option: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
    for number in [int(file.name) for file in _DESCRIPTORS.iterdir()] if option else []:
        with (
            suppress(OSError),  # no socket, or closed in the meantime
            socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as accepting,
        ):
            if option and accepting.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                accepting.setsockopt(socket.IPPROTO_TCP, option, UNREAD_S * 1000)


async def _stop_with_parent(parent: int, stop: Callable[[], None]) -> None:
    """Stop when the parent was killed: an orphan would keep the address from a new server."""
    while os.getppid() == parent:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(_ORPHANED_S)
    stop()


def _stopper(drain: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Return the handler of SIGTERM: it drains the open requests, then stops granian.

    Granian by itself would stop accepting requests at once and wait for open streams without
    notifying the application. It also stops at SIGINT, which is sent after the drain.
    """

    async def end() -> None:
        try:
            await drain()
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    tasks: list[asyncio.Task[None]] = []  # one, however often the signal is sent

    def stop() -> None:
        if not tasks:
            tasks.append(asyncio.create_task(end()))

    return stop


def check_free(server: ServerSettings) -> None:
    """Raise ``ConfigurationError`` with a readable message if the address cannot be bound."""
    host, port = server.host, server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"{host}:{port} cannot be used: {error.strerror}.",
                hint="Choose another with --host and --port.",
            ) from None
