"""Only configured hosts are called: no telemetry, no price list, no redirect, no proxy.

Both language model writers run through the whole product.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from agents.tracing import get_trace_provider
from tests.providers.loopback import Loopback, Request, Step, chat, embeddings, refuse
from tests.support.samples import read, small_book

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.server.app import create_app
from reliability.network import watched
from reliability.rows import Rows

pytestmark = pytest.mark.real

_WRITERS = ("openai:test-model", "agents:test-model")
_KEY = "sk-canary-of-the-model"
_SAID = "A kettle boils water at 100 degrees Celsius. [1]"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_REDIRECT = b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.2:9/\r\nConnection: close\r\n\r\n"


class Provider:
    """Provider that embeds, and in turn redirects, fails, echoes the request and answers."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Iterator[Step]:
        if not request.path.endswith("/chat/completions"):
            return embeddings(request)
        self.asked += 1
        ways = ([_REDIRECT], refuse(400, f"{request.headers} {request.body}"), chat(_SAID))
        return iter(ways[self.asked % len(ways)])


@contextmanager
def _logged() -> Iterator[io.StringIO]:
    stream, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(stream), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


async def _ask(writer: str, url: str, folder: Path, questions: int) -> int:
    """Ask this many questions; return how many were answered."""
    settings = load_settings(
        {
            "home": folder / "home",
            "writer": writer,
            "embedder": "openai:text-embedding-3-small",
            "model": {
                "base_url": url,
                "api_key": _KEY,
                "timeout_s": 20,
                "first_token_timeout_s": 20,
            },
            "embedding": {"base_url": url, "api_key": _KEY},
        },
        environ={"OPENAI_API_KEY": "sk-canary-of-the-account"},
    )
    library = Book(settings, new=True)
    await library.ingest(read(small_book(folder / "docs")))
    transport = httpx.ASGITransport(create_app(library, settings))
    answered = 0
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for number in range(questions):
            asked = f"At how many degrees does kettle number {number} boil water?"
            told = await client.post("/ask", json={"text": asked, "relevance_threshold": 0.0})
            assert told.status_code == 200, told.text
            answered += told.json()["has_relevant_context"]
    await library.close()
    return answered


async def test_nobody_but_the_configured_host_is_called(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rows.add(
        "S16",
        "Outgoing connections of libraries",
        requirement=(
            "0 calls to others; keys in no log and in no request but the one to the provider"
        ),
    )
    for name in _PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.2:9")
    questions, answered, provider = rows.count(6, 60), 0, Provider()
    with Loopback(provider) as upstream, watched() as seen, _logged() as lines:
        for writer in _WRITERS:
            folder = tmp_path / writer.partition(":")[0]
            folder.mkdir()
            answered += await _ask(writer, upstream.url, folder, questions)
        await asyncio.to_thread(get_trace_provider().shutdown)  # what it kept, it would send now
        ours = (f"socket.connect (('127.0.0.1', {upstream.port}),)", "socket.getaddrinfo 127.0.0.1")
        others = [call for call in seen if call not in ours]
        keys = {request.headers.get("authorization") for request in upstream.requests}
    leaked = lines.getvalue().count("canary")
    row.record(
        f"{questions} questions each through {' and '.join(_WRITERS)} and a hosted embedder: "
        f"{len(seen)} connections, with proxies in the environment, redirects, errors that repeat "
        "the request, and the traces of the SDK flushed",
        f"{len(others)} calls to others; {leaked} keys in log lines at DEBUG; {answered} of "
        f"{questions * len(_WRITERS)} answered all the same",
        passed=not others
        and not leaked
        and keys == {f"Bearer {_KEY}"}
        and answered == questions * len(_WRITERS)
        and provider.asked >= questions,
    )
