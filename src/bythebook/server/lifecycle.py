"""State of a server process, and the routes that report it: ``/health``, ``/ready``, ``/live``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from bythebook import __version__
from bythebook.book import Book
from bythebook.errors import BookError
from bythebook.server.sse import Streams

_log = logging.getLogger(__name__)

_WARM_UP_AGAIN_S = 1.0
_DRAIN_S = 10.0

State = Literal["ready", "warming", "stopping", "failing"]


class Lifecycle:
    def __init__(self, book: Book, streams: Streams) -> None:
        self._book = book
        self._streams = streams
        self._is_warm = False
        self._is_stopping = False
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the application's lifespan: warm up the book; drain and close it at the end."""
        warming = asyncio.create_task(self._warm_up())
        self._book.start_background_jobs()
        try:
            yield
        finally:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
            await self.drain()
            await self._book.close()

    async def drain(self) -> None:
        """Report the state stopping, end the streams, and wait for the requests in progress."""
        self._is_stopping = True
        await self._streams.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._idle.wait()

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request as in progress; ``drain`` waits for it."""
        self._in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def process_state(self) -> State:
        """Return the state of this process alone; it can work without some of its stores."""
        if self._is_stopping:
            return "stopping"
        return "ready" if self._is_warm else "warming"

    async def state(self) -> State:
        """Return the state of this process and its stores."""
        own = self.process_state()
        if own != "ready":
            return own
        stores = await self._book.stores()
        return "ready" if all(store == "ok" for store in stores.values()) else "failing"

    async def _warm_up(self) -> None:
        is_logged = False
        while not self._is_warm:
            try:
                await self._book.warm_up()
                self._is_warm = True
            except BookError as error:
                if not is_logged:
                    _log.warning("cannot open the book yet, retrying: %s", error)
                is_logged = True
                await asyncio.sleep(_WARM_UP_AGAIN_S)


# --- the routes that report it --------------------------------------------------------------------


class Health(BaseModel):
    status: Literal["ok", "failing"]
    services: dict[str, str]
    version: str


class Ready(BaseModel):
    status: State


def health_routes(book: Book, lifecycle: Lifecycle) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/health", responses={503: {"model": Health}})
    async def health(response: Response) -> Health:
        services = await book.health()
        is_well = all(state == "ok" for state in services.values())
        response.status_code = 200 if is_well else 503
        return Health(status="ok" if is_well else "failing", services=services, version=__version__)

    @router.get("/ready", responses={503: {"model": Ready}})
    async def ready(response: Response) -> Ready:
        return _report(await lifecycle.state(), response)

    @router.get("/live", responses={503: {"model": Ready}})
    async def live(response: Response) -> Ready:
        return _report(lifecycle.process_state(), response)

    return router


def _report(state: State, response: Response) -> Ready:
    response.status_code = 200 if state == "ready" else 503
    return Ready(status=state)
