"""HTTP itself: methods, host names, redirects, caches and connections that are used again."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import AccessSettings, ServerSettings, Settings
from bythebook.config.settings import AccessSettings as Rules
from bythebook.server.app import create_app
from bythebook.server.middleware import BodyLimitMiddleware, RequestMiddleware
from tests.server.access_fixtures import PAGE, access_of, app_behind, client_of
from tests.server.asgi_client import ask
from tests.server.running_server import Running, slow_server

_HERE = ("127.0.0.1", 50_000)
_READ = (
    "/ /health /ready /live /metrics /docs /admin /llms.txt /llms-full.txt /v1/models "
    "/openapi.json /read/docs/intro /widget.js /reader/contents /reader/page /docs/intro.md "
    "/chat/threads"
)


@pytest.mark.parametrize("path", _READ.split())
def test_head_is_answered_like_get_without_a_body(client: TestClient, path: str) -> None:
    while client.get("/ready").status_code == 503:
        pass  # the book is being opened
    got, head = client.get(path), client.head(path)
    assert head.status_code == got.status_code < 400
    assert head.content == b""
    if path != "/metrics":  # which counts these requests
        assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["content-type"] == got.headers["content-type"]


def test_head_of_what_can_only_be_posted_is_refused(client: TestClient) -> None:
    assert client.head("/query").status_code == 405


@pytest.mark.parametrize("path", ["/query/", "/chat/run/", "/health/", "//evil.example/query/"])
def test_no_answer_leads_to_the_host_that_the_client_names(client: TestClient, path: str) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Proto": "https"}
    for method in ("GET", "POST"):
        answer = client.request(method, path, headers=headers, follow_redirects=False)
        assert answer.status_code in (404, 405)
        assert "location" not in answer.headers


@pytest.mark.parametrize("path", ["/docs/", "/admin/", "/read/"])
def test_pages_are_found_with_a_slash_too(client: TestClient, path: str) -> None:
    assert client.get(path, follow_redirects=False).status_code == 200


def test_nothing_of_a_conversation_is_cached(client: TestClient) -> None:
    told = client.post("/chat/run", json={"message": "Does a kettle boil water?"})
    answers = [told, client.get(f"/chat/threads/{told.json()['session_id']}")]
    answers += [client.get("/chat/threads")]
    assert [answer.headers["cache-control"] for answer in answers] == ["no-store"] * 3


# --- host names


def _here(library: Book, **access: object) -> TestClient:
    rules = AccessSettings.model_validate(access)
    app = create_app(library, Settings(access=rules), access_of(rules))
    return TestClient(app, "http://localhost", client=_HERE)


_FOREIGN = (
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.x",
    "127.0.0.1%evil.example",
    "[::1].evil.example",
    "localhost:80@evil.example",
)
_ROUTES = (*_READ.split(), "POST /query", "POST /chat/run", "POST /mcp", "POST /reader/search")


@pytest.mark.parametrize("route", _ROUTES)
def test_page_of_another_name_gets_nothing_from_a_private_server(library: Book, route: str) -> None:
    method, _, path = route.rpartition(" ")
    with _here(library) as client:
        for host in _FOREIGN:
            answer = client.request(method or "GET", path, headers={"Host": host}, json={})
            assert answer.status_code == 421, host
            assert "access.origins" in answer.json()["message"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8000",
        "localhost.:1",
        "book.localhost",
        "127.0.0.1",
        "127.0.0.1:8000",
        "[::1]:8000",
        "10.1.2.3:8000",
        "book.example",
        "book.example:8000",
    ],
)
def test_addresses_and_own_names_are_answered(library: Book, host: str) -> None:
    with _here(library, origins=["https://book.example"]) as client:
        for path in ("/live", "/health", "/reader/contents"):
            assert client.get(path, headers={"Host": host}).status_code != 421


def test_server_for_others_answers_to_every_name(library: Book) -> None:
    for settings in (
        Settings(server=ServerSettings(host="0.0.0.0"), access=AccessSettings(keys="open")),
        Settings(access=AccessSettings(keys="open", trusted_proxies=("127.0.0.1/32",))),
    ):
        app = create_app(library, settings)
        with TestClient(app, "http://book.example", client=_HERE) as client:
            assert client.get("/reader/contents").status_code == 200


# --- origins


async def test_refused_preflight_names_the_setting(caplog: pytest.LogCaptureFixture) -> None:
    asks = {"Access-Control-Request-Method": "POST"}
    async with client_of() as client:
        with caplog.at_level(logging.WARNING):
            for origin in ("http://localhost:3000", "http://localhost:3000", "x\u00a0y", "null"):
                headers = {b"Origin": origin.encode("latin-1"), **_bytes(asks)}
                answer = await client.options("/chat/run", headers=headers)
                assert answer.status_code == 403
                assert "access.origins" in answer.text and "BYTHEBOOK_ORIGINS" in answer.text
                assert "access-control-allow-origin" not in answer.headers
    lines = [record.getMessage() for record in caplog.records if "asked for" in record.msg]
    assert len(lines) == 1
    assert "http://localhost:3000" in lines[0] and "access.origins" in lines[0]


async def test_error_responses_have_cors_headers() -> None:
    rules = Rules(origins=(PAGE,), per_key=1)
    async with client_of(rules) as client:
        for status in (200, 429):
            answer = await client.post("/chat/run", headers={"Origin": PAGE})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert "Retry-After" in answer.headers["access-control-expose-headers"]


def _bytes(headers: dict[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in headers.items()}


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


async def test_body_that_does_not_arrive_in_time_is_rejected() -> None:
    async def never(scope: object, receive: object, send: object) -> None:
        raise AssertionError("the application was asked")

    limited = BodyLimitMiddleware(never, largest=10, timeout_s=0.01)
    app = RequestMiddleware(limited, contracts=(), proxies=())
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


# --- connections of a real server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with slow_server(tmp_path_factory.mktemp("http")) as running:
        yield running


def _chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 10_000):
        yield b"x" * 10_000


@pytest.mark.loopback
@pytest.mark.parametrize("size", [200_000, 1_500_000, 3_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_request_after_a_too_large_one_is_answered(
    server: Running, size: int, chunked: bool
) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for _ in range(15):
            body = _chunks(size) if chunked else b"x" * size
            assert client.post("/query", content=body).status_code == 413
            assert client.post("/query", json={"text": "Is it?"}).status_code == 200


@pytest.mark.loopback
@pytest.mark.parametrize(
    "chunks", ["zz\r\nabc\r\n0\r\n\r\n", "-1\r\nabc\r\n", "3\r\nabcX\r\n0\r\n\r\n"]
)
def test_malformed_chunks_are_a_bad_request(server: Running, chunks: str) -> None:
    head = "POST /query HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall((head + chunks).encode())
        assert line.recv(4096).startswith(b"HTTP/1.1 400")
