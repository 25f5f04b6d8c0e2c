"""Settings in, a running server: granian in front of the application."""

from __future__ import annotations

import os
import socket

from fastapi import FastAPI
from granian import Granian
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from bythebook.assemble import open_library
from bythebook.errors import ConfigurationError
from bythebook.serve.app import create_app
from bythebook.settings import Server, Settings

_SETTINGS = "BYTHEBOOK_SERVER_SETTINGS"  # how a worker process learns them


def from_environment() -> FastAPI:
    """What each worker process calls."""
    settings = Settings.model_validate_json(os.environ[_SETTINGS])
    return create_app(open_library(settings), settings)


def run(settings: Settings) -> None:
    host, port = settings.server.host, settings.server.port
    os.environ[_SETTINGS] = settings.model_dump_json()
    Granian(
        "bythebook.serve.run:from_environment",
        factory=True,
        interface=Interfaces.ASGI,
        address=host,
        port=port,
        workers=1,
        log_level=LogLevels.warning,
        websockets=False,
        workers_kill_timeout=10,
        http1_settings=HTTP1Settings(header_read_timeout=5000),
    ).serve()


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
