"""Health checks of every configured provider and store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bythebook.config.settings import AUTO
from bythebook.retrieval.embeddings import embed
from bythebook.wiring import (
    Hosted,
    build_book,
    embedder_name,
    open_catalog,
    open_embedder,
    qdrant_server,
    redis_counter,
)

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
        async with await asyncio.to_thread(build_book, settings) as book:
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
        async with _hosted(settings) as hosted:
            embedder = open_embedder(name, settings, hosted)
            await embed(["Is the book open?"], embedder, role="query")

    async def check_reader() -> None:
        async with _hosted(settings) as hosted:
            if (reader := hosted.reader()) is not None:
                await reader.prepare()

    async def check_writer() -> None:
        async with _hosted(settings) as hosted:
            if hosted.added_writer() is None:
                await hosted.writer().probe()

    name = settings.embedder
    if name == AUTO:
        name = embedder_name(settings, open_catalog(settings))
    checks: dict[str, HealthCheck] = {f"embedder {name}": check_embedder}
    if settings.reader != "none":
        checks[f"reader {settings.reader}"] = check_reader
    if settings.writer != "extractive":
        checks[f"writer {settings.writer}"] = check_writer
    return checks


@asynccontextmanager
async def _hosted(settings: Settings) -> AsyncIterator[Hosted]:
    hosted = Hosted(settings)
    try:
        yield hosted
    finally:
        await hosted.close()
