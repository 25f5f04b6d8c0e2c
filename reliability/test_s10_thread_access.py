"""A thread is accessible to its owner only; knowing its id is not a permission."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient
from tests.server.access_fixtures import PEPPER, access_of
from tests.support.samples import read, small_book

from bythebook.access_stores import open_access_stores
from bythebook.book import Book
from bythebook.config.settings import AccessSettings as Rules
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.access import make_key
from bythebook.server.app import create_app
from reliability.rows import Rows

_CANARY = "heliotrope"
_QUESTION = f"At how many degrees does a kettle of {_CANARY} boil water?"
_KEYS = {name: make_key(PEPPER) for name in ("ann", "bob")}
_BY_NAME = (
    ("GET", "/chat/threads/{thread_id}"),
    ("GET", "/session/{thread_id}/history"),
    ("DELETE", "/chat/threads/{thread_id}"),
    ("DELETE", "/session/{thread_id}"),
)
_PLENTY = 1_000_000  # requests a minute: not the limits are tried here
_BY_BODY = ("/chat/run", "/chat/stream")


def _of(name: str) -> dict[str, str]:
    return {"X-API-Key": _KEYS[name][0]} if name in _KEYS else {}


@contextmanager
def _serving(folder: Path, threads: SqlThreads) -> Iterator[TestClient]:
    shelf, catalog = MemoryGenerationStore(), MemoryCatalog()
    library = Book(embedder=FakeEmbedder(), store=shelf, catalog=catalog, threads=threads)
    asyncio.run(library.ingest(read(small_book(folder / "docs"))))
    stores = open_access_stores()
    for _, key in _KEYS.values():
        asyncio.run(stores.keys.add(key))
    door = access_of(Rules(per_key=_PLENTY, per_address=_PLENTY), stores)
    with TestClient(create_app(library, access=door)) as client:
        yield client


def _talk(client: TestClient, session: str) -> str:
    """Create a thread of one owner; return the id of the last event of its stream."""
    body = {"message": _QUESTION, "session_id": session}
    assert client.post("/chat/run", json=body, headers=_of("ann")).status_code == 200
    told = client.post("/chat/stream", json=body, headers=_of("ann")).text
    return next(line.removeprefix("id: ") for line in told.splitlines() if line.startswith("id: "))


def _tried_by(client: TestClient, who: str, session: str, event: str) -> list[str]:
    """Try every way to another owner's thread; return what should not have come back."""
    headers, faults, messages = _of(who), [], set()
    for name in (session, str(uuid.uuid4())):
        for method, path in _BY_NAME:
            told = client.request(method, path.format(thread_id=name), headers=headers)
            messages.add(told.json().get("message"))
            if told.status_code != 404 or _CANARY in told.text:
                faults.append(f"{method} {path}: {told.status_code}")
    if len(messages) != 1:
        faults.append(f"another's conversation and none are told apart: {messages}")
    body = {"message": "And what did I ask before?", "session_id": session}
    for path in _BY_BODY:
        told = client.post(path, json=body, headers=headers)
        refused = told.status_code == 404 or '"NOT_FOUND"' in told.text
        if not refused or _CANARY in told.text:
            faults.append(f"POST {path}: {told.status_code} {told.text[:200]}")
    first = f"{event.partition('.')[0]}.0"
    again = client.post("/chat/stream", json=body, headers={**headers, "Last-Event-ID": first})
    if _CANARY in again.text:
        faults.append("another's stream was taken up")
    listed = client.get("/chat/threads", headers=headers).json()["threads"]
    return faults + [f"listed: {thread}" for thread in listed]


def _faults(client: TestClient, conversations: int) -> Iterator[str]:
    served = {
        (method.upper(), path)
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
        if "thread_id}" in path
    }
    assert served == set(_BY_NAME), "an operation on threads is not tried here"
    for _ in range(conversations):
        session = str(uuid.uuid4())
        event = _talk(client, session)
        for who in ("bob", "nobody"):
            yield from _tried_by(client, who, session, event)
        kept = client.get(f"/chat/threads/{session}", headers=_of("ann"))
        if kept.status_code != 200 or kept.text.count(_CANARY) < 2:
            yield "the owner's conversation is not whole"


def test_no_way_leads_to_another_s_conversation(rows: Rows, tmp_path: Path) -> None:
    row = rows.add("S10", "Access to another owner's thread", requirement="0 reads, 0 deletes")
    conversations = rows.count(5, 50)
    stores = {
        "memory": MemoryThreads(),
        "sql": SqlThreads(open_database(None, tmp_path / "home"), deadline_s=60),
    }
    faults: list[str] = []
    for name, threads in stores.items():
        with _serving(tmp_path / name, threads) as client:
            faults += _faults(client, conversations)
    tries = len(stores) * conversations * 2 * (2 * len(_BY_NAME) + len(_BY_BODY) + 2)
    row.record(
        f"{len(stores) * conversations} conversations of one key, in memory and in SQL, each tried "
        f"by another key and by none: {tries:,} reads, deletes, appends, lists and resumed streams",
        "; ".join(faults[:3]) or "0 reads, 0 deletes; the owner's are whole",
        passed=not faults,
    )
