"""Routes that report the state of the server: ``/health``, ``/ready`` and ``/live``."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from bythebook import __version__
from bythebook.book import Book
from bythebook.server.lifecycle import Lifecycle, State


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
