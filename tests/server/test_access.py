"""The access middleware around a small application, without a socket."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Message

from bythebook.access_stores import AccessStores, open_access_stores
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import load_settings
from bythebook.server.access import needs_keys
from bythebook.server.middleware.api_keys import make_key
from bythebook.server.middleware.context import RequestContextMiddleware
from bythebook.server.middleware.errors import ErrorMiddleware
from bythebook.server.middleware.messages import BodyLimitMiddleware
from tests.server.access_fixtures import AWAY, PEPPER, access_of, app_behind, client_of, new_key

_PAGE = "https://book.example"


@pytest.fixture
def stores() -> AccessStores:
    return open_access_stores()


# --- keys


async def test_request_without_a_key_is_rejected_if_keys_are_required(stores: AccessStores) -> None:
    async with client_of(stores=stores) as client:
        assert (await client.post("/chat/run")).json()["owner"] is None
    async with client_of(stores=stores, needs_keys=True) as client:
        refused = await client.post("/chat/run")
        assert refused.status_code == 401
        assert refused.json()["contract"] == "chat"
        assert refused.headers["www-authenticate"] == "Bearer"
        assert (await client.post("/query")).json()["contract"] == "envelope"
        assert (await client.get("/threads")).status_code == 401
        assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("needed", [True, False])
async def test_the_owner_of_a_request_is_its_key(stores: AccessStores, needed: bool) -> None:
    text, key = await new_key(stores)
    async with client_of(stores=stores, needs_keys=needed) as client:
        ways: list[dict[str, str]] = [
            {"Authorization": f"Bearer {text}"},
            {"authorization": f"bearer  {text} "},
            {"X-API-Key": text},
            {"Authorization": "Basic dXNlcjpwdw==", "X-API-Key": text},
        ]
        for headers in ways:
            response = await client.post("/chat/run", headers=headers)
            assert response.json()["owner"] == key.id


@pytest.mark.parametrize("needed", [True, False])
async def test_invalid_key_is_rejected_even_if_keys_are_optional(
    stores: AccessStores, needed: bool
) -> None:
    text, key = await new_key(stores)
    await stores.keys.revoke(key.id, datetime.now(UTC))
    async with client_of(stores=stores, needs_keys=needed) as client:
        for wrong in (text, make_key(PEPPER)[0], "btk_", "btp_nonsense"):
            response = await client.post("/chat/run", headers={"X-API-Key": wrong})
            assert response.status_code == 401
            assert wrong not in response.text


async def test_foreign_credentials_are_ignored_if_keys_are_optional(stores: AccessStores) -> None:
    async with client_of(stores=stores) as client:
        response = await client.post("/chat/run", headers={"Authorization": "Bearer sk-other"})
        assert response.json()["owner"] is None


async def test_publishable_key_allows_only_post_from_its_origin(stores: AccessStores) -> None:
    text, _ = await new_key(stores, _PAGE)
    headers = {"X-API-Key": text, "Origin": _PAGE}
    async with client_of(stores=stores, needs_keys=True) as client:
        assert (await client.get("/threads", headers=headers)).status_code == 401
        assert (await client.delete("/threads", headers=headers)).status_code == 401


async def test_no_log_line_contains_a_key(
    stores: AccessStores, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text, key = await new_key(stores)
    async with client_of(stores=stores, needs_keys=True) as client:
        await client.post("/chat/run", headers={"X-API-Key": text})
        await stores.keys.revoke(key.id, datetime.now(UTC))
        await client.post("/chat/run", headers={"Authorization": f"Bearer {text}x"})
    assert text not in caplog.text


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, False),
        ({"server": {"host": "::1"}}, False),
        ({"server": {"host": "0.0.0.0"}}, True),
        ({"server": {"host": "192.0.2.1"}}, True),
        ({"access": {"trusted_proxies": ["127.0.0.1/32"]}}, True),
        ({"server": {"host": "0.0.0.0"}, "access": {"keys": "open"}}, False),
        ({"access": {"keys": "required"}}, True),
    ],
)
def test_keys_are_required_if_other_machines_can_reach_the_server(
    flags: dict[str, Any], expected: bool
) -> None:
    assert needs_keys(load_settings(flags, environ={})) is expected


# --- limits


async def test_exactly_100_of_1000_requests_are_allowed_per_key(stores: AccessStores) -> None:
    keys = [(await new_key(stores))[0] for _ in range(2)]
    async with client_of(stores=stores, address="127.0.0.1") as client:
        for text in keys:
            asked = [client.post("/chat/run", headers={"X-API-Key": text}) for _ in range(1000)]
            answers = await asyncio.gather(*asked)
            assert sorted(a.status_code for a in answers) == [200] * 100 + [429] * 900
            refused = next(a for a in answers if a.status_code == 429)
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert refused.headers["ratelimit-remaining"] == "0"
            assert refused.json()["contract"] == "chat"


async def test_envelope_is_limited_by_session_and_address() -> None:
    async with client_of() as client:
        for session in (str(uuid.uuid4()), str(uuid.uuid4())):
            body = {"session_id": session}
            codes = [(await client.post("/query", json=body)).status_code for _ in range(12)]
            assert codes == [200] * 10 + [429] * 2
        assert (await client.post("/query", json={})).status_code == 429
    async with client_of() as client:
        codes = [(await client.post("/query", json={})).status_code for _ in range(22)]
        assert codes == [200] * 20 + [429] * 2


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"session_id": 1}', b"[" * 30_000, b"\xff"])
async def test_body_without_a_session_is_limited_by_address_only(body: bytes) -> None:
    async with client_of() as client:
        assert (await client.post("/query", content=body)).status_code == 200


async def test_loopback_without_a_key_is_exempt_unless_set(stores: AccessStores) -> None:
    for address in ("127.0.0.1", "::1"):
        async with client_of(Rules(per_key=1), address=address) as client:
            for _ in range(5):
                answer = await client.post("/chat/run")
                assert answer.status_code == 200 and "ratelimit-limit" not in answer.headers
    async with client_of(Rules(per_key=1, limit_loopback=True), address="127.0.0.1") as client:
        assert [(await client.post("/chat/run")).status_code for _ in range(2)] == [200, 429]


async def test_clients_of_one_publishable_key_are_limited_by_address(stores: AccessStores) -> None:
    text, _ = await new_key(stores, _PAGE)
    headers = {"X-API-Key": text, "Origin": _PAGE}
    for address in ("192.0.2.1", "192.0.2.2"):
        async with client_of(Rules(per_key=1), stores, address=address) as client:
            codes = [(await client.post("/chat/run", headers=headers)).status_code for _ in "12"]
            assert codes == [200, 429]


async def test_forged_forwarded_header_does_not_evade_the_limit() -> None:
    rules = Rules(per_key=3, trusted_proxies=("10.0.0.0/8",))
    async with client_of(rules, address=AWAY) as client:
        codes = [
            (await client.post("/chat/run", headers={"X-Forwarded-For": f"1.2.3.{n}"})).status_code
            for n in range(5)
        ]
    assert codes == [200] * 3 + [429] * 2
    async with client_of(rules, address="10.0.0.1") as client:
        codes = [
            (
                await client.post("/chat/run", headers={"X-Forwarded-For": f"1.2.3.{n}, {AWAY}"})
            ).status_code
            for n in range(5)
        ]
        assert codes == [200] * 3 + [429] * 2
        other = await client.post("/chat/run", headers={"X-Forwarded-For": "192.0.2.99"})
        assert other.status_code == 200


async def test_at_most_five_streams_per_client_and_ended_ones_free_their_slot(
    stores: AccessStores,
) -> None:
    text, _ = await new_key(stores)
    go = asyncio.Event()
    open_now = 0

    async def stream(request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            nonlocal open_now
            open_now += 1
            await go.wait()
            yield b"event: done\n\n"
            open_now -= 1

        return StreamingResponse(events(), media_type="text/event-stream")

    async with client_of(stores=stores, answer=stream) as client:
        headers = {"X-API-Key": text}
        tasks = [
            asyncio.create_task(client.post("/chat/stream", headers=headers)) for _ in range(40)
        ]
        for _, refused in zip(range(35), asyncio.as_completed(tasks), strict=False):
            assert (await refused).status_code == 429
        assert open_now == 5
        go.set()
        codes = sorted([(await task).status_code for task in tasks])
        assert codes == [200] * 5 + [429] * 35
        assert (await client.post("/chat/stream", headers=headers)).status_code == 200


# --- bodies


async def _length(request: Request) -> Response:
    return JSONResponse({"length": len(await request.body())})


async def _pieces(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize("path", ["/chat/run", "/query", "/health"])
async def test_body_of_128_kib_is_accepted_and_one_byte_more_rejected(path: str) -> None:
    async with client_of(answer=_length) as client:
        for size, status in ((128 * 1024, 200), (128 * 1024 + 1, 413), (10**6, 413)):
            whole = await client.post(path, content=b"x" * size)
            chunked = await client.post(path, content=_pieces(b"x" * size))
            assert "content-length" not in chunked.request.headers
            assert (whole.status_code, chunked.status_code) == (status, status)
            if status == 200 and path != "/health":
                assert whole.json() == chunked.json() == {"length": size}


async def test_wrong_content_length_does_not_evade_the_body_limit() -> None:
    async with client_of(answer=_length) as client:
        for claimed in ("5", "-1", "nonsense", "9" * 400):
            body = _pieces(b"x" * 150_000)
            response = await client.post(
                "/chat/run", content=body, headers={"Content-Length": claimed}
            )
            assert response.status_code == 413


async def ask(app: Any, messages: Sequence[Message], **scope: Any) -> list[Message]:
    """One request, message by message; after the last one, the connection stays silent."""
    left = list(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def send(message: Message) -> None:
        sent.append(message)

    whole = {
        "type": "http",
        "method": "POST",
        "path": "/chat/run",
        "headers": [],
        "query_string": b"",
        "client": (AWAY, 1),
        **scope,
    }
    await app(whole, receive, send)
    return sent


async def test_body_that_does_not_arrive_in_time_is_rejected() -> None:
    async def never(scope: object, receive: object, send: object) -> None:
        raise AssertionError("the application was asked")

    limited = ErrorMiddleware(BodyLimitMiddleware(never, largest=10, timeout_s=0.01))
    app = RequestContextMiddleware(limited, contracts=(), proxies=())
    sent = await ask(app, [{"type": "http.request", "body": b"x", "more_body": True}])
    assert sent[0]["status"] == 400


async def test_body_that_breaks_off_or_cannot_be_parsed_is_rejected() -> None:
    """The HTTP server reports malformed chunks as a disconnect, but the client still listens."""
    app = app_behind(access_of())
    half = {"type": "http.request", "body": b"x", "more_body": True}
    sent = await ask(app, [half, {"type": "http.disconnect"}])
    assert sent[0]["status"] == 400


async def test_error_after_the_response_started_is_raised() -> None:
    from bythebook.errors import WriterFailed

    async def breaks(request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            yield b"event: delta\n\n"
            raise WriterFailed("The writer broke off.")

        return StreamingResponse(events())

    app = app_behind(access_of(), breaks)
    with pytest.raises(WriterFailed):
        await ask(app, [{"type": "http.request", "body": b"{}"}])


# --- pages


async def test_error_responses_have_cors_headers() -> None:
    rules = Rules(origins=(_PAGE,), per_key=1)
    async with client_of(rules) as client:
        for status in (200, 429):
            answer = await client.post("/chat/run", headers={"Origin": _PAGE})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == _PAGE
            assert "Retry-After" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize("origin", ["*", "null", "book.example", "https://book.example/docs"])
def test_only_exact_origins_can_be_set(origin: str) -> None:
    from bythebook.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=r"access\.origins"):
        load_settings({"access": {"origins": [origin]}}, environ={})


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    settings = load_settings(
        environ={
            "BYTHEBOOK_ORIGINS": "https://a.example, https://b.example",
            "BYTHEBOOK_TRUSTED_PROXIES": "10.0.0.0/8,::1",
        }
    )
    assert settings.access.origins == ("https://a.example", "https://b.example")
    assert settings.access.trusted_proxies == ("10.0.0.0/8", "::1")


def test_secrets_are_hidden_in_the_repr_of_settings() -> None:
    flags = {
        "access": {"pepper": "sixteen letters or more", "rate_limit_store": "redis://:secret@h:1/0"}
    }
    settings = load_settings(flags, environ={})
    shown = settings.model_dump_json() + repr(settings)
    assert "secret" not in shown and "sixteen" not in shown


# --- requests that are repeated


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
    for address, headers in callers:
        async with client_of(stores=stores, address=address, answer=answer) as client:
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
    from dataclasses import replace

    from bythebook.providers.testing import MemoryReplies

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
    from dataclasses import replace

    from bythebook.errors import DatabaseFailed
    from bythebook.interfaces.access import ReplyClaim
    from bythebook.providers.testing import MemoryReplies

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


async def test_application_receives_the_whole_body() -> None:
    async def echo(request: Request) -> Response:
        return JSONResponse(await request.json())

    async with client_of(answer=echo) as client:
        body = {"message": "Ä" * 1000}
        answer = await client.post("/chat/run", content=_pieces(json.dumps(body).encode(), 7))
        assert answer.json() == body
