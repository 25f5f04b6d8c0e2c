"""A server dies between keeping an exchange and answering; asked again, it is kept once."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from reliability.crash import Point, before, started, survived

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.providers.sql.access import SqlReplies
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import FakeEmbedder, MemoryCatalog, MemoryGenerationStore
from bythebook.server.access import open_access
from bythebook.server.app import create_app
from bythebook.types import Thread
from tests.support.databases import POSTGRES, address
from tests.support.samples import read

_BEFORE_THE_REPLY_IS_KEPT = before(SqlReplies.keep)
_QUESTION = "At how many degrees does a kettle boil water?"


@dataclass(frozen=True)
class Deployment:
    """A server on real databases, each time in a process of its own."""

    docs: Path
    home: Path
    database: str | None

    def ask(self, path: str, body: dict[str, Any], point: Point | None = None) -> bool:
        """Whether the server lived to answer; what it said is in ``told``."""
        return survived(started(self._ask, path, body, point))

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.home / "told").read_text("utf-8"))
        return told

    def kept(self) -> list[Thread]:
        return asyncio.run(self._kept())

    async def _kept(self) -> list[Thread]:
        threads = SqlThreads(open_database(self.database, self.home), deadline_s=60)
        named = await threads.list(owner=None)
        kept = [await threads.read(one.id, owner=None, whole=True) for one in named]
        await threads.close()
        return [thread for thread in kept if thread is not None]

    def _ask(self, path: str, body: dict[str, Any], point: Point | None) -> None:
        told = asyncio.run(self._answer(path, body, point))
        (self.home / "told").write_text(json.dumps(told), "utf-8")

    async def _answer(self, path: str, body: dict[str, Any], point: Point | None) -> dict[str, Any]:
        app = create_app(await self._library(), access=open_access(self._settings()))
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            if point is not None:
                point.arm()
            answer = await client.post(path, json=body, headers={"Idempotency-Key": "one"})
        assert answer.status_code == 200, answer.text
        return _last_event(answer.text) if path.endswith("stream") else answer.json()

    def _settings(self) -> Any:
        environ = {"BYTHEBOOK_HOME": str(self.home)}
        environ |= {"DATABASE_URL": self.database} if self.database else {}
        return load_settings(environ=environ, directory=self.home)

    async def _library(self) -> Book:
        library = Book(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=MemoryCatalog(),
            threads=SqlThreads(open_database(self.database, self.home), deadline_s=60),
        )
        await library.ingest(read(self.docs))
        return library


def _last_event(stream: str) -> dict[str, Any]:
    lines = [line for line in stream.splitlines() if line.startswith("data: ")]
    told: dict[str, Any] = json.loads(lines[-1].removeprefix("data: "))
    return told


@pytest.fixture(params=["sqlite", POSTGRES])
def deployment(request: pytest.FixtureRequest, book_folder: Path, tmp_path: Path) -> Deployment:
    home = tmp_path / "home"
    home.mkdir()
    return Deployment(book_folder, home, address(request.param, home, request))


@pytest.mark.parametrize(
    ("path", "session"),
    [("/chat/run", {"session_id": str(uuid.uuid4())}), ("/chat/stream", {})],
    ids=["in a thread", "a stream that begins a thread"],
)
def test_crash_before_the_response_stores_one_exchange(
    deployment: Deployment, path: str, session: dict[str, str]
) -> None:
    body = {"message": _QUESTION, **session}
    assert not deployment.ask(path, body, _BEFORE_THE_REPLY_IS_KEPT)
    (before,) = deployment.kept()
    assert len(before.messages) == 2
    assert deployment.ask(path, body)
    (after,) = deployment.kept()
    assert (after.id, len(after.messages)) == (before.id, 2)
    assert after.id == deployment.told["session_id"]
    assert deployment.told["response"].startswith(after.messages[1].content)
    first = deployment.told
    assert deployment.ask(path, body)
    assert deployment.told == first
    assert deployment.kept() == [after]
