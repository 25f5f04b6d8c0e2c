"""Health checks of every configured provider and store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bythebook.access_stores import redis_counter
from bythebook.book import Book
from bythebook.retrieval.embeddings import embed
from bythebook.wiring import Providers, open_catalog, qdrant_server

if TYPE_CHECKING:
    from bythebook.config.settings import Settings

_TIMEOUT_S = 5.0

HealthCheck = Callable[[], Awaitable[None]]  # raises a BookError with a hint if the check fails


def store_checks(settings: Settings) -> dict[str, HealthCheck]:
    """Return a health check of each configured store, by role and kind."""

    async def database() -> None:
        await asyncio.to_thread(lambda: open_catalog(settings).served())

    async def server() -> None:
        from bythebook.providers.qdrant.nodes import Nodes

        nodes = Nodes(qdrant_server(settings))
        try:
            await nodes.call(lambda node: node.get_collections(), seconds=_TIMEOUT_S)
        finally:
            await nodes.close()

    async def index() -> None:
        async with await asyncio.to_thread(Book, settings) as book:
            await book.context()

    async def rate_limits() -> None:
        counter = redis_counter(settings.access.rate_limit_store)
        try:
            await counter.take("check", limit=1, seconds=1)
        finally:
            await counter.close()

    kind = (settings.database_url or "sqlite").partition(":")[0]
    checks: dict[str, HealthCheck] = {f"database {kind.partition('+')[0]}": database}
    if settings.store == "qdrant":
        checks["store qdrant"] = server
    checks["index"] = index
    if settings.access.rate_limit_store.startswith("redis"):
        checks["counts redis"] = rate_limits
    return checks


def provider_checks(settings: Settings) -> dict[str, HealthCheck]:
    """Return a health check of embedder, reader and writer, by role and name."""

    async def check_embedder() -> None:
        async with _providers(settings) as providers:
            await embed(["Is the book open?"], providers.embedder, role="query")

    async def check_reader() -> None:
        async with _providers(settings) as providers:
            if providers.reader is not None:
                await providers.reader.prepare()

    async def check_writer() -> None:
        async with _providers(settings) as providers:
            if (probe := getattr(providers.writer, "probe", None)) is not None:
                await probe()

    checks: dict[str, HealthCheck] = {
        f"embedder {Providers(settings).embedder_name}": check_embedder
    }
    if settings.reader != "none":
        checks[f"reader {settings.reader}"] = check_reader
    if settings.writer != "extractive":
        checks[f"writer {settings.writer}"] = check_writer
    return checks


@asynccontextmanager
async def _providers(settings: Settings) -> AsyncIterator[Providers]:
    providers = Providers(settings)
    try:
        yield providers
    finally:
        await providers.close()
