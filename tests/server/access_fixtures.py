"""A small application behind the real access control, for tests that are not about the book.

``make`` is what a real server's workers call; it reads the settings from the environment.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import httpx
from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bythebook.access_stores import AccessStores, open_access_stores
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import load_settings
from bythebook.contracts.errors import Call, Fail
from bythebook.errors import BookError, InvalidInput, NotAllowed, NotFound, RateLimited, TooLarge
from bythebook.interfaces.access import ApiKey
from bythebook.server.access import AccessControl, make_key, open_access
from bythebook.server.app import wrap
from bythebook.server.middleware import ContractRoute

PEPPER = b"a pepper for the tests"
AWAY = "198.51.100.9"
PAGE = "https://book.example"
_STATUS = {TooLarge: 413, InvalidInput: 400, NotFound: 404, NotAllowed: 401, RateLimited: 429}

Answer = Callable[[Request], Awaitable[Response]]


class Said(BaseModel):
    contract: str
    message: str
    worker: int = Field(default_factory=os.getpid)


def fail_as(contract: str) -> Fail:
    def fail(error: BookError, call: Call | None = None, /) -> tuple[int, Said]:
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 503)
        return status, Said(contract=contract, message=error.message)

    return fail


async def _who(request: Request) -> Response:
    return JSONResponse({"owner": request.state.owner, "worker": os.getpid()})


def app_behind(access: AccessControl, answer: Answer = _who) -> ASGIApp:
    """Routes of chat (/chat/…, /threads), of envelope (/query), and /health of nobody."""

    async def endpoint(request: Request) -> Response:
        return await answer(request)

    named = [
        ("chat", Route("/chat/run", endpoint, methods=["POST"])),
        ("chat", Route("/chat/stream", endpoint, methods=["POST"])),
        ("chat", Route("/threads", endpoint, methods=["GET", "DELETE"])),
        ("envelope", Route("/query", endpoint, methods=["POST"])),
    ]
    app = FastAPI(routes=[route for _, route in named], openapi_url=None)
    for path in ("/health", "/ready"):
        app.router.routes.append(Route(path, _who, methods=["GET", "POST"]))
    contracts = [ContractRoute(name, route, fail_as(name)) for name, route in named]
    return wrap(app, access, contracts)


def access_of(
    rules: Rules | None = None, stores: AccessStores | None = None, *, needs_keys: bool = False
) -> AccessControl:
    return AccessControl(
        rules or Rules(), stores or open_access_stores(), needs_keys=needs_keys, pepper=PEPPER
    )


def client_of(
    rules: Rules | None = None,
    stores: AccessStores | None = None,
    *,
    address: str = AWAY,
    needs_keys: bool = False,
    answer: Answer | None = None,
) -> httpx.AsyncClient:
    access = access_of(rules, stores, needs_keys=needs_keys)
    app = app_behind(access, answer) if answer else app_behind(access)
    transport = httpx.ASGITransport(app, client=(address, 50_000))
    return httpx.AsyncClient(transport=transport, base_url="http://server")


async def new_key(stores: AccessStores, *origins: str) -> tuple[str, ApiKey]:
    text, key = make_key(PEPPER, origins=origins)
    await stores.keys.add(key)
    return text, key


def make() -> ASGIApp:
    return app_behind(open_access(load_settings()), _slowly)


async def _slowly(request: Request) -> Response:
    await asyncio.sleep(0.02)
    return await _who(request)
