"""Answers, keys and threads are for their owners only."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient
from tests.server.access_fixtures import PEPPER, access_of, client_of, new_key
from tests.support.samples import read, small_book
from typer.testing import CliRunner

from bythebook.access_stores import open_access_stores
from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.config.settings import AccessSettings as Rules
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryKeys,
    MemoryThreads,
)
from bythebook.server.access import KeyRing, make_key
from bythebook.server.app import create_app
from bythebook.server.middleware import client_address, networks
from reliability.rows import Row

_ALLOWED = ("https://book.example", "http://localhost:3000", "https://key.example")
_STRANGERS = (
    "null",
    "",
    "*",
    "https://book.example.evil.example",
    "https://evilbook.example",
    "https://book.example:443",
    "https://book.example:8443",
    "https://book.example/",
    "https://BOOK.example",
    "HTTPS://book.example",
    "http://book.example",
    "https://www.book.example",
    "https://book.exampl",
    "http://localhost",
    "http://localhost:30000",
    "http://127.0.0.1:3000",
    "https://book.example https://evil.example",
    "https://bооk.example".encode().decode("latin-1"),
    "file://",
    "https://book.example%00.evil.example",
)


def _faults_of_origin(origin: str, preflight: httpx.Response, answer: httpx.Response) -> list[str]:
    allowed = origin in _ALLOWED
    faults = []
    for response in (preflight, answer):
        named = response.headers.get("access-control-allow-origin")
        if named != (origin if allowed else None):
            faults.append(f"{origin!r} was told {named!r}")
        if "Origin" not in response.headers["vary"]:
            faults.append(f"{origin!r}: caches are not told that the answer varies")
        if "access-control-allow-credentials" in response.headers:
            faults.append(f"{origin!r} may send credentials")
    if preflight.status_code != (200 if allowed else 403):
        faults.append(f"{origin!r}: the preflight was {preflight.status_code}")
    if allowed:
        assert preflight.headers["access-control-max-age"] == "600"
        assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
        assert "POST" in preflight.headers["access-control-allow-methods"]
    return faults


@pytest.mark.smoke
@pytest.mark.row(
    "S6",
    "Answers read by pages of other sites (CORS)",
    "0 foreign origins allowed; never `*`",
)
async def test_origins_are_exact(row: Row) -> None:
    stores = open_access_stores()
    await new_key(stores, "https://key.example")
    rules = Rules(origins=("https://book.example", "http://localhost:3000"))
    faults: list[str] = []
    async with client_of(rules, stores, needs_keys=True) as client:
        for origin in (*_ALLOWED, *_STRANGERS):
            headers = {b"origin": origin.encode("latin-1")}
            asks = {b"access-control-request-method": b"POST", **headers}
            preflight = await client.options("/chat/run", headers=asks)
            faults += _faults_of_origin(
                origin, preflight, await client.post("/chat/run", headers=headers)
            )
    row.record(
        f"{len(_STRANGERS)} origins that are nearly allowed (null, suffix, port, case, scheme) and "
        f"{len(_ALLOWED)} that are, each with a preflight and a request",
        "; ".join(faults) or "0 strangers allowed, every allowed page served",
        passed=not faults,
    )


_PAGE = "https://book.example"
_ELSEWHERE = (
    None,
    "null",
    "https://evil.example",
    "https://book.example.evil.example",
    "https://book.example:8443",
    "http://book.example",
    "https://BOOK.example",
)
_KEYS = 20


def _told_by_a_dump(home: Path) -> int:
    """Count keys and pepper in the database, as text or bytes."""
    command = ["keys", "create", "--home", str(home)]
    texts = [CliRunner().invoke(app, command).stdout.strip() for _ in range(_KEYS)]
    with sqlite3.connect(home / "bythebook.db") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    stored = dump.encode() + b"".join(file.read_bytes() for file in home.glob("bythebook.db*"))
    assert all(text.split("_")[1] in dump for text in texts), "a key's name is there"
    secrets = [text.split("_", 2)[2] for text in texts] + [(home / "pepper").read_text()]
    return sum(secret.encode() in stored for secret in secrets)


async def _revoked_let_in() -> int:
    now, store, late = 0.0, MemoryKeys(), 0
    ring = KeyRing(store, PEPPER, clock=lambda: now)
    for _ in range(_KEYS):
        text, key = make_key(PEPPER)
        await store.add(key)
        now += 1
        assert await ring.holder(text) == key
        await store.revoke(key.id, datetime.now(UTC))
        now += 0.99
        late += await ring.holder(text) is not None
    return late


async def _strangers_let_in() -> int:
    stores = open_access_stores()
    text, _ = await new_key(stores, _PAGE)
    async with client_of(stores=stores, needs_keys=True) as client:
        codes = []
        for origin in (_PAGE, *_ELSEWHERE):
            headers = {"X-API-Key": text} | ({"Origin": origin} if origin else {})
            codes.append((await client.post("/chat/run", headers=headers)).status_code)
    assert codes[0] == 200
    return sum(code != 401 for code in codes[1:])


@pytest.mark.row(
    "S7",
    "Stolen, guessed or misused API keys",
    "0 keys in a dump, revoked keys refused within 1 s, publishable keys only on their own page",
)
async def test_a_key_is_its_holders_alone(row: Row, tmp_path: Path) -> None:
    told = await asyncio.to_thread(_told_by_a_dump, tmp_path)
    late, strangers = await _revoked_let_in(), await _strangers_let_in()
    row.record(
        f"{_KEYS} keys and the pepper looked for in the database; {_KEYS} keys used 0.99 s after "
        f"their end; a publishable key from {len(_ELSEWHERE)} other origins",
        f"{told} keys found; {late} revoked and {strangers} strangers let in",
        passed=not (told or late or strangers),
    )


_PROXIES = networks(["10.0.0.0/8", "192.0.2.7/32", "2001:db8:aaaa::/48"])
_CALLER = "198.51.100.9"
VARIANTS: tuple[tuple[str, list[str], str], ...] = (
    # Nobody in front: what the caller writes does not matter.
    (_CALLER, [], _CALLER),
    (_CALLER, ["1.2.3.4"], _CALLER),
    (_CALLER, ["127.0.0.1"], _CALLER),
    (_CALLER, ["10.0.0.1"], _CALLER),
    (_CALLER, ["1.2.3.4, 10.0.0.1"], _CALLER),
    ("127.0.0.1", ["1.2.3.4"], "127.0.0.1"),
    ("192.0.2.8", ["1.2.3.4"], "192.0.2.8"),
    # One proxy of ours.
    ("10.0.0.1", [_CALLER], _CALLER),
    ("192.0.2.7", [_CALLER], _CALLER),
    ("10.0.0.1", [], "10.0.0.1"),
    ("10.0.0.1", [""], "10.0.0.1"),
    ("10.0.0.1", [f"1.2.3.4, {_CALLER}"], _CALLER),
    ("10.0.0.1", [f"1.2.3.4,5.6.7.8,{_CALLER}"], _CALLER),
    ("10.0.0.1", [f"127.0.0.1, {_CALLER}"], _CALLER),
    ("10.0.0.1", ["1.2.3.4", _CALLER], _CALLER),
    ("10.0.0.1", [_CALLER, "1.2.3.4"], "1.2.3.4"),
    ("10.0.0.1", [f"  {_CALLER}\t"], _CALLER),
    # Several of ours.
    ("10.0.0.1", [f"{_CALLER}, 10.9.9.9"], _CALLER),
    ("10.0.0.1", [f"1.2.3.4, {_CALLER}, 10.9.9.9, 10.8.8.8"], _CALLER),
    ("10.0.0.1", [f"10.7.7.7, {_CALLER}, 10.9.9.9"], _CALLER),
    ("10.0.0.1", ["10.7.7.7, 10.9.9.9"], "10.7.7.7"),
    # What is no address ends the chain at the last proxy that could be believed.
    ("10.0.0.1", ["unknown"], "10.0.0.1"),
    ("10.0.0.1", ["1.2.3.4, unknown"], "10.0.0.1"),
    ("10.0.0.1", ["1.2.3.4, , "], "10.0.0.1"),
    ("10.0.0.1", ["1.2.3.4, 999.1.1.1"], "10.0.0.1"),
    ("10.0.0.1", ["_hidden, 10.9.9.9"], "10.9.9.9"),
    # The ways in which an address is written.
    ("10.0.0.1", [f"{_CALLER}:52100"], _CALLER),
    ("10.0.0.1", [f'"{_CALLER}"'], _CALLER),
    ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
    ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
    ("10.0.0.1", ["fe80::1%eth0"], "fe80::1"),
    ("10.0.0.1", [f"::ffff:{_CALLER}"], _CALLER),
    ("::ffff:10.0.0.1", [_CALLER], _CALLER),
    ("2001:db8:aaaa::5", [_CALLER], _CALLER),
    ("2001:db8:bbbb::5", [_CALLER], "2001:db8:bbbb::5"),
)


@pytest.mark.smoke
@pytest.mark.row(
    "S8",
    "Client addresses forged in headers",
    "0 forged addresses believed",
)
def test_who_calls_is_not_what_callers_say(row: Row) -> None:
    wrong = [
        (peer, forwarded)
        for peer, forwarded, expected in VARIANTS
        if client_address(peer, forwarded, _PROXIES) != ip_address(expected)
    ]
    row.record(
        f"{len(VARIANTS)} variants of the headers, direct and behind proxies of ours",
        f"{len(wrong)} believed {wrong[:3] or ''}".strip(),
        passed=not wrong,
    )


_CANARY = "heliotrope"
_QUESTION = f"At how many degrees does a kettle of {_CANARY} boil water?"
_OWNERS = {name: make_key(PEPPER) for name in ("ann", "bob")}
_BY_NAME = (
    ("GET", "/chat/threads/{thread_id}"),
    ("GET", "/session/{thread_id}/history"),
    ("DELETE", "/chat/threads/{thread_id}"),
    ("DELETE", "/session/{thread_id}"),
)
_PLENTY = 1_000_000  # requests a minute: not the limits are tried here
_BY_BODY = ("/chat/run", "/chat/stream")


def _of(name: str) -> dict[str, str]:
    return {"X-API-Key": _OWNERS[name][0]} if name in _OWNERS else {}


@contextmanager
def _serving(folder: Path, threads: SqlThreads) -> Iterator[TestClient]:
    shelf, catalog = MemoryGenerationStore(), MemoryCatalog()
    library = Book(embedder=FakeEmbedder(), store=shelf, catalog=catalog, threads=threads)
    asyncio.run(library.ingest(read(small_book(folder / "docs"))))
    stores = open_access_stores()
    for _, key in _OWNERS.values():
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


def _faults_of_threads(client: TestClient, conversations: int) -> Iterator[str]:
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


@pytest.mark.row(
    "S10",
    "Access to another owner's thread",
    "0 reads, 0 deletes",
)
def test_no_way_leads_to_another_s_conversation(row: Row, tmp_path: Path) -> None:
    conversations = row.count(5, 50)
    stores = {
        "memory": MemoryThreads(),
        "sql": SqlThreads(open_database(None, tmp_path / "home"), deadline_s=60),
    }
    faults: list[str] = []
    for name, threads in stores.items():
        with _serving(tmp_path / name, threads) as client:
            faults += _faults_of_threads(client, conversations)
    tries = len(stores) * conversations * 2 * (2 * len(_BY_NAME) + len(_BY_BODY) + 2)
    row.record(
        f"{len(stores) * conversations} conversations of one key, in memory and in SQL, each tried "
        f"by another key and by none: {tries:,} reads, deletes, appends, lists and resumed streams",
        "; ".join(faults[:3]) or "0 reads, 0 deletes; the owner's are whole",
        passed=not faults,
    )
