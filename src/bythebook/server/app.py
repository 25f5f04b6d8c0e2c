"""Assemble the ASGI application of an open book, and the middleware around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook import __version__
from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.server.access import (
    AccessControl,
    AuthenticationMiddleware,
    is_reachable,
    needs_keys,
    open_local_access,
)
from bythebook.server.admin import admin_routes
from bythebook.server.contracts.base import Services
from bythebook.server.contracts.registry import CONTRACTS, contract_routers
from bythebook.server.idempotency import IdempotencyMiddleware
from bythebook.server.lifecycle import Lifecycle, health_routes
from bythebook.server.middleware import (
    BodyLimitMiddleware,
    ContractRoute,
    RequestMiddleware,
)
from bythebook.server.observability import Metrics, RequestLogMiddleware, attach_reply
from bythebook.server.openapi import describe
from bythebook.server.origins import CorsMiddleware, HostMiddleware
from bythebook.server.pages.markdown import MarkdownNames, markdown_routes
from bythebook.server.pages.routes import book_routes
from bythebook.server.rate_limit import RateLimitMiddleware
from bythebook.server.requests import add_error_handlers, fail
from bythebook.server.sse import Streams
from bythebook.server.static_files import static_routes

if TYPE_CHECKING:
    from bythebook.server.mcp import McpEndpoint


def create_app(
    book: Book, settings: Settings | None = None, access: AccessControl | None = None
) -> FastAPI:
    """Create the application; by default, ``access`` needs no keys and stores nothing."""
    settings = settings or Settings()
    access = access or open_local_access()
    streams = Streams(heartbeat_s=settings.server.heartbeat_s)
    lifecycle = Lifecycle(book, streams)
    metrics = Metrics(lambda: streams.open_count, book.asked)
    book.observers += [metrics.count_reply, attach_reply]
    required = needs_keys(settings)
    private = not (required or is_reachable(settings))
    tools = _mcp_endpoint(book, private=private)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with lifecycle.running(), tools.running() if tools else nullcontext():
            yield
        await access.close()

    app = FastAPI(
        title="By the Book",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would lead to whatever host the client names
    )
    app.state.lifecycle = lifecycle
    add_error_handlers(app)
    routers = contract_routers(Services(book, streams, settings.server.api_query))
    names = MarkdownNames()
    reader = book_routes(book, names.name)
    admin = admin_routes(book, needs_key=not private)
    markdown = markdown_routes(book, names)
    contracts = [
        *_contract_routes([*routers, admin]),
        *_contract_routes([reader, markdown], is_public=settings.server.page_key is not None),
        *([tools.contract] if tools else []),
    ]
    app.add_middleware(wrap, access=access, contracts=contracts, private=private)
    app.add_middleware(  # outermost: rejected requests are counted, too
        RequestLogMiddleware,
        lifecycle=lifecycle,
        metrics=metrics,
        show_questions=settings.log.questions,
    )
    operations = (health_routes(book, lifecycle), metrics.routes())
    for router in (*routers, reader, admin, *operations):
        app.include_router(router)
    if tools:
        app.router.routes.append(tools.contract.route)
    described = cache(lambda: describe(app, routers, needs_key=required))
    app.openapi = described  # type: ignore[method-assign]
    pages = static_routes(settings, needs_key=required)
    names.give_way_to([*routers, reader, admin, *operations, pages])
    app.include_router(pages)
    app.include_router(markdown)
    return app


def _contract_routes(
    routers: Sequence[APIRouter], *, is_public: bool = False
) -> Iterator[ContractRoute]:
    for router in routers:
        name = str(router.tags[0])
        contract_fails = CONTRACTS[name].fail if name in CONTRACTS else fail
        for route in router.routes:
            yield ContractRoute(name, route, contract_fails, is_public)


def _mcp_endpoint(book: Book, *, private: bool) -> McpEndpoint | None:
    """Return the endpoint of the MCP tools if the extra ``mcp`` is installed."""
    if find_spec("mcp") is None:
        return None
    from bythebook.server.mcp import McpEndpoint  # noqa: PLC0415 - an extra

    return McpEndpoint(book, private=private)


def wrap(
    app: ASGIApp,
    access: AccessControl,
    contracts: Sequence[ContractRoute],
    *,
    private: bool = False,
) -> ASGIApp:
    """Wrap the application in all middleware; a request passes the last one added first.

    ``private``: the server needs no keys, and only this machine can reach it.
    """
    rules, stores, pepper = access.rules, access.stores, access.pepper
    inner: ASGIApp = IdempotencyMiddleware(app, replies=stores.replies, pepper=pepper)
    inner = RateLimitMiddleware(inner, rules=rules, counter=stores.counter, pepper=pepper)
    inner = BodyLimitMiddleware(inner, largest=rules.body_bytes)
    inner = AuthenticationMiddleware(inner, ring=access.ring, required=access.needs_keys)
    if private:
        inner = HostMiddleware(inner, origins=rules.origins)
    inner = RequestMiddleware(inner, contracts=contracts, proxies=rules.trusted_proxies)
    guarded = CorsMiddleware(inner, origins=access.origins)

    async def http_only(scope: Scope, receive: Receive, send: Send) -> None:
        await (guarded if scope["type"] == "http" else app)(scope, receive, send)

    return http_only
