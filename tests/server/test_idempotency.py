"""A request with an Idempotency-Key is processed once, and its reply repeated."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bythebook.access_stores import AccessStores, open_access_stores
from bythebook.errors import DatabaseFailed
from bythebook.interfaces.access import KeptReply, ReplyClaim
from bythebook.providers.sql.access import SqlReplies
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import (
    MemoryReplies,
)
from bythebook.server.app import create_app
from tests.server.access_fixtures import AWAY, access_of, app_behind, client_of, new_key
from tests.server.asgi_client import ask
from tests.server.conftest import small_library

_QUESTION = "At how many degrees does a kettle boil water?"


class DyingReplies(SqlReplies):
    """The process dies before it can keep the reply: it neither keeps it nor gives up the claim."""

    async def keep(self, key: str, token: str, reply: KeptReply) -> None:
        raise DatabaseFailed("The process has died.")


@pytest.mark.parametrize(
    ("path", "session"),
    [("/chat/run", {"session_id": str(uuid.uuid4())}), ("/chat/stream", {})],
    ids=["in a thread", "a stream that begins a thread"],
)
async def test_crash_before_the_reply_is_kept_stores_one_exchange(
    book_folder: Path, tmp_path: Path, path: str, session: dict[str, str]
) -> None:
    database = open_database(None, tmp_path)
    threads = SqlThreads(database, deadline_s=60)
    library = await small_library(book_folder, threads=threads)

    async def answered_by(replies: SqlReplies) -> str:
        access = access_of(stores=replace(open_access_stores(), replies=replies))
        transport = httpx.ASGITransport(create_app(library, access=access))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            body, key = {"message": _QUESTION, **session}, {"Idempotency-Key": "one"}
            answer = await client.post(path, json=body, headers=key)
        assert answer.status_code == 200
        return answer.text

    await answered_by(DyingReplies(database))
    told = await answered_by(SqlReplies(database))
    assert await answered_by(SqlReplies(database)) == told
    [named] = await threads.list(owner=None)
    kept = await threads.read(named.id, owner=None, whole=True)
    assert kept is not None and len(kept.messages) == 2
    assert named.id in told


class Counted:
    """Answers slowly, each time differently."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.times = 0
        self.asked = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.times += 1
        self.asked.set()
        await asyncio.sleep(0.02)
        return JSONResponse({"answer": f"é {uuid.uuid4()}"}, self.status, {"X-Kept": "yes"})


@pytest.fixture
def answer() -> Iterator[Counted]:
    yield Counted()


async def test_fifty_concurrent_repeats_are_processed_once(answer: Counted) -> None:
    async with client_of(answer=answer) as client:
        post = {"json": {"message": "?"}, "headers": {"Idempotency-Key": "one"}}
        answers = await asyncio.gather(*(client.post("/chat/run", **post) for _ in range(50)))
        again = await client.post("/chat/run", **post)
    assert answer.times == 1
    assert {a.content for a in (*answers, again)} == {again.content}
    assert {a.status_code for a in answers} == {200}
    assert sum(a.headers.get("idempotent-replayed") == "true" for a in answers) == 49
    assert again.headers["x-kept"] == "yes"
    assert again.headers["content-type"] == "application/json"


async def test_another_body_or_route_with_the_same_key_is_a_422(answer: Counted) -> None:
    async with client_of(answer=answer) as client:
        key = {"Idempotency-Key": "one"}
        assert (await client.post("/chat/run", json={"a": 1}, headers=key)).status_code == 200
        for path, body in (("/chat/run", {"a": 2}), ("/query", {"a": 1})):
            changed = await client.post(path, json=body, headers=key)
            assert changed.status_code == 422
            assert "Idempotency-Key" in changed.json()["message"]
    assert answer.times == 1


async def test_idempotency_keys_of_different_callers_are_separate(
    stores: AccessStores, answer: Counted
) -> None:
    callers: list[tuple[str, dict[str, str]]] = [
        (AWAY, {}),
        ("192.0.2.1", {}),
        (AWAY, {"X-API-Key": (await new_key(stores))[0]}),
        (AWAY, {"X-API-Key": (await new_key(stores))[0]}),
    ]
    seen = set()
    for caller, headers in callers:
        async with client_of(stores=stores, address=caller, answer=answer) as client:
            post = {"json": {}, "headers": {"Idempotency-Key": "one", **headers}}
            seen.add((await client.post("/chat/run", **post)).content)
    assert (len(seen), answer.times) == (4, 4)


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_failed_request_can_be_repeated(status: int) -> None:
    answer = Counted(status)
    async with client_of(answer=answer) as client:
        for _ in range(2):
            await client.post("/chat/run", json={}, headers={"Idempotency-Key": "one"})
    assert answer.times == 2


@pytest.mark.parametrize(("last", "times"), [("done", 1), ("error", 2)])
async def test_only_a_complete_stream_is_stored(last: str, times: int) -> None:
    asked = 0

    async def stream(request: Request) -> Response:
        nonlocal asked
        asked += 1

        async def events() -> AsyncIterator[bytes]:
            yield b"event: delta\ndata: {}\n\n"
            yield f"event: {last}\ndata: {{}}\n\n".encode()

        return StreamingResponse(events(), media_type="text/event-stream")

    async with client_of(answer=stream) as client:
        key = {"Idempotency-Key": "one"}
        contents = {(await client.post("/chat/stream", headers=key)).content for _ in "12"}
    assert (len(contents), asked) == (1, times)


async def test_disconnect_releases_the_idempotency_key(answer: Counted) -> None:
    app = app_behind(access_of(), answer)
    request = [{"type": "http.request", "body": b"{}"}]
    headers = [(b"idempotency-key", b"one")]
    left = asyncio.create_task(ask(app, request, headers=headers))
    await answer.asked.wait()
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    sent = await ask(app, request, headers=headers)
    assert (sent[0]["status"], answer.times) == (200, 2)


async def test_claim_of_a_long_request_is_renewed(stores: AccessStores) -> None:
    """Another server that is asked meanwhile waits for him; had he died, it would not."""

    class Watched(MemoryReplies):
        held = asyncio.Event()

        async def hold(self, claims: Mapping[str, str]) -> None:
            await super().hold(claims)
            self.held.set()

    replies = Watched()

    async def slowly(request: Request) -> Response:
        await replies.held.wait()
        return JSONResponse({})

    async with client_of(stores=replace(stores, replies=replies), answer=slowly) as client:
        headers = {"Idempotency-Key": "one"}
        assert (await client.post("/chat/run", headers=headers)).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "\x7f", "é"])
async def test_unusable_idempotency_key_is_rejected(key: str, answer: Counted) -> None:
    async with client_of(answer=answer) as client:
        headers = {b"idempotency-key": key.encode("latin-1")}
        assert (await client.post("/chat/run", headers=headers)).status_code == 400


async def test_requests_are_processed_while_the_store_is_down(
    stores: AccessStores, answer: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    class Away(MemoryReplies):
        async def claim(self, key: str, fingerprint: str) -> ReplyClaim:
            raise DatabaseFailed("The database did not answer.")

    async with client_of(stores=replace(stores, replies=Away()), answer=answer) as client:
        for _ in range(3):
            headers = {"Idempotency-Key": "one"}
            assert (await client.post("/chat/run", headers=headers)).status_code == 200
    assert (answer.times, len(caplog.records)) == (3, 1)


async def test_get_requests_are_not_idempotency_checked(answer: Counted) -> None:
    async with client_of(answer=answer) as client:
        for _ in range(2):
            await client.get("/threads", headers={"Idempotency-Key": "one"})
    assert answer.times == 2
