"""Settings in, a running server: granian in front of the application, one or several workers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial

from granian import Granian
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.assemble import open_library
from bythebook.errors import ConfigurationError
from bythebook.library import Library
from bythebook.serve.app import create_app
from bythebook.serve.door import open_door
from bythebook.serve.log import configuration
from bythebook.serve.memory import collect_often, give_back_often, share_among_threads
from bythebook.settings import Server, Settings

_KILL_AFTER_S = 13  # more than a drain takes, and less than operators wait
_ORPHANED_S = 0.5  # until a worker notices that it is one


OpenBook = Callable[[Settings], Library]


def run(settings: Settings, *, open_book: OpenBook = open_library) -> None:
    server = settings.server
    Granian(
        "bythebook.serve.run:worker",
        interface=Interfaces.ASGI,
        address=server.host,
        port=server.port,
        workers=server.workers,
        respawn_failed_workers=True,
        log_level=LogLevels.warning,
        log_dictconfig=configuration(),
        websockets=False,
        workers_kill_timeout=_KILL_AFTER_S,
        http1_settings=HTTP1Settings(header_read_timeout=5000),
    ).serve(target_loader=partial(worker, settings, open_book), wrap_loader=False)


def worker(settings: Settings, open_book: OpenBook) -> ASGIApp:
    """What each worker process serves."""
    share_among_threads()
    app = create_app(open_book(settings), settings, open_door(settings))
    collect_often()

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            stop = _Stop(app.state.operations.drain)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.begin)
            beside = [
                asyncio.create_task(_end_with(os.getppid(), stop)),
                asyncio.create_task(give_back_often()),
            ]
            try:
                await app(scope, receive, send)
            finally:
                for task in beside:
                    task.cancel()
        else:
            await app(scope, receive, send)

    return served


async def _end_with(parent: int, stop: _Stop) -> None:
    """Who started us was killed: an orphan would hold the address against a server started anew."""
    while os.getppid() == parent:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(_ORPHANED_S)
    stop.begin()


class _Stop:
    """SIGTERM: first everything is answered, then granian is told to end.

    Granian by itself would close the door at once and wait for open streams without telling the
    application. It ends at SIGINT too, which is how it is told.
    """

    def __init__(self, drain: Callable[[], Awaitable[None]]) -> None:
        self._drain = drain
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._end())

    async def _end(self) -> None:
        try:
            await self._drain()
        finally:
            os.kill(os.getpid(), signal.SIGINT)


def check_free(server: Server) -> None:
    """Say now, in a sentence, that an address cannot be used."""
    host, port = server.host, server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"{host}:{port} cannot be used: {error.strerror}.",
                cure="Choose another with --host and --port.",
            ) from None
