"""Assemble the ASGI application of an open book."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from fastapi import FastAPI

from bythebook import __version__
from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.server.access import AccessControl, contracts_of, is_reachable, needs_keys, open_here
from bythebook.server.admin.routes import admin_routes
from bythebook.server.api_docs.openapi import describe
from bythebook.server.mcp import Endpoint, is_installed
from bythebook.server.observability.operations import Operations, operation_routes
from bythebook.server.reader.routes import reader_routes
from bythebook.server.routes import contract_routers
from bythebook.server.sse import Streams
from bythebook.server.static_pages import page_routes
from bythebook.server.widget import widget_routes


def create_app(
    library: Book, settings: Settings | None = None, door: AccessControl | None = None
) -> FastAPI:
    """Create the application; the default ``door`` needs no keys and stores nothing."""
    settings = settings or Settings()
    door = door or open_here()
    streams = Streams(heartbeat_s=settings.server.heartbeat_s)
    operations = Operations(library, streams, show_questions=settings.log.questions)
    required = needs_keys(settings)
    private = not (required or is_reachable(settings))
    tools = Endpoint(library, private=private) if is_installed() else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with operations.running(), tools.running() if tools else nullcontext():
            yield
        await door.close()

    app = FastAPI(
        title="By the Book", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.operations = operations
    routers = contract_routers(library, streams, api_query=settings.server.api_query)
    for router in routers:
        app.include_router(router)
    reader, admin = reader_routes(library), admin_routes(library, needs_key=not private)
    for router in (reader, admin):
        app.include_router(router)
    contracts = [
        *contracts_of(routers),
        *contracts_of([reader], is_public=settings.server.page_key is not None),
        *contracts_of([admin]),
        *([tools.contract] if tools else []),
    ]
    app.add_middleware(door.wrap, contracts=contracts)
    app.add_middleware(operations.around)  # outermost: rejected requests are counted, too
    app.include_router(operation_routes(library, operations))
    app.include_router(widget_routes())
    if tools:
        app.router.routes.append(tools.contract.route)
    app.openapi = lambda: describe(app, routers, needs_key=required)  # type: ignore[method-assign]
    app.include_router(page_routes(settings, needs_key=required, describe=app.openapi))
    return app
