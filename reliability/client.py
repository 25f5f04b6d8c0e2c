"""Serve a book to test readers over HTTP, without a socket between them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bythebook.book import Book
from bythebook.conversations.query_log import LogQueue
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import FakeEmbedder, MemoryGenerationStore
from bythebook.server.app import create_app

TEXT = "At how many degrees does a kettle boil water?"


def library_on(database: str, home: Path, *, deadline_s: float, waiting: int = 1000) -> Book:
    """Open a book whose catalog, threads and log are in this database; everything else is in
    memory.
    """
    engine = open_database(database, home)
    return Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=SqlCatalog(engine, home),
        threads=SqlThreads(engine, deadline_s=deadline_s),
        log=LogQueue(SqlQueryLog(engine), capacity=waiting),
        deadline_s=deadline_s,
    )


@asynccontextmanager
async def open_for_readers(library: Book) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(library)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client,
    ):
        yield client


@dataclass
class Reader:
    """Test client that repeats one question and records the replies."""

    client: httpx.AsyncClient
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    asked: int = 0
    kept: int = 0  # exchanges that were said to be kept
    failed: int = 0  # answers with a status of 500 and above
    wrong: int = 0  # that do not say what the book says

    async def talk(self) -> bool:
        """Ask the next question of a thread; return whether the reply says that it was stored."""
        body = {"message": TEXT, "session_id": self.session}
        response = await self.client.post("/chat/run", json=body)
        self._note(response, "response")
        kept = response.status_code == 200 and response.json().get("persisted", True)
        self.kept += kept
        return kept

    async def query(self) -> None:
        self._note(await self.client.post("/query", json={"text": TEXT}), "answer")

    def _note(self, response: httpx.Response, name: str) -> None:
        self.asked += 1
        self.failed += response.status_code >= 500
        self.wrong += response.status_code < 500 and "100 degrees" not in response.json()[name]


async def is_ready(client: httpx.AsyncClient) -> bool:
    return (await client.get("/ready")).status_code == 200
