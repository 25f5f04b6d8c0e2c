"""What an operator sees: ids, states, figures, and one line for each question."""

from __future__ import annotations

import json
import logging
import logging.config
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.conversations.query_log import LoggedRequest, LogQueue
from bythebook.errors import DatabaseFailed, WriterFailed
from bythebook.interfaces.conversations import Asker
from bythebook.interfaces.store import Generation
from bythebook.providers.testing import (
    MemoryCatalog,
)
from bythebook.server.app import create_app
from bythebook.server.observability import FIELDS, JsonFormatter, configuration, redact
from bythebook.types import Question
from tests.conversations.test_query_log import FragileLog
from tests.server.conftest import FragileEmbedder, small_library

if TYPE_CHECKING:
    pass

_QUESTION = "At how many degrees does a kettle boil water?"


class Catalog(MemoryCatalog):
    broken = False

    def current(self) -> Generation | None:
        if self.broken:
            raise DatabaseFailed("The database did not answer.")
        return super().current()

    def served(self) -> str | None:
        current = self.current()
        return current and current.name


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


@pytest.fixture
def parts(catalog: Catalog) -> dict[str, object]:
    return {"catalog": catalog}


@pytest.fixture
def app(library: Book) -> FastAPI:
    return create_app(library)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        _wait_until_ready(client)
        yield client


def _wait_until_ready(client: TestClient) -> None:
    for _ in range(6000):
        if client.get("/ready").status_code == 200:
            return
        time.sleep(0.01)
    raise AssertionError("it does not become ready")


def _lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    form = JsonFormatter()
    ours = [r for r in caplog.records if r.name.startswith("bythebook") and r.msg == "question"]
    return [json.loads(form.format(record)) for record in ours]


# --- request ids ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/health", "/nowhere", "/metrics"])
def test_every_response_has_a_request_id(client: TestClient, path: str) -> None:
    first, second = (client.get(path).headers["x-request-id"] for _ in range(2))
    assert first == str(uuid.UUID(first))  # with dashes, as in the bodies
    assert first != second


def test_request_id_of_the_client_is_used_if_it_is_a_plain_token(client: TestClient) -> None:
    def answered_with(sent: str) -> str:
        return client.get("/ready", headers={"x-request-id": sent}).headers["x-request-id"]

    assert answered_with("trace-1.2_3") == "trace-1.2_3"
    spelled = str(uuid.uuid4())
    for sent in (spelled, spelled.upper(), spelled.replace("-", "")):
        assert answered_with(sent) == spelled
    for sent in ("", "a b", "a\tb", "x" * 65, "<script>", "{}", "a;b"):
        assert answered_with(sent) != sent


def test_unexpected_error_is_a_500_with_an_id_and_no_details(
    app: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    @app.get("/bug")
    async def bug() -> None:
        raise RuntimeError("a secret place")

    with TestClient(app) as client:
        response = client.get("/bug", headers={"x-request-id": "mine"})
    assert response.status_code == 500
    assert response.headers["x-request-id"] == response.json()["request_id"] == "mine"
    assert "secret" not in response.text
    assert "a secret place" in caplog.text


# --- health and readiness ---------------------------------------------------------------------


def test_it_is_not_ready_before_the_book_is_open(embedder: FragileEmbedder, library: Book) -> None:
    embedder.broken = True
    with TestClient(create_app(library)) as client:
        response = client.get("/ready")
        assert (response.status_code, response.json()) == (503, {"status": "warming"})
        assert client.get("/live").status_code == 503
        embedder.broken = False
        _wait_until_ready(client)


def test_it_is_not_ready_while_the_database_fails(catalog: Catalog, client: TestClient) -> None:
    catalog.broken = True
    response = client.get("/ready")
    assert (response.status_code, response.json()) == (503, {"status": "failing"})
    health = client.get("/health")
    assert health.status_code == 503
    assert health.json()["services"]["database"] == "The database did not answer."
    assert health.json()["services"]["embedder"] == "ok"
    assert client.get("/live").status_code == 200  # it answers all the same
    catalog.broken = False
    assert client.get("/ready").status_code == 200


def test_it_is_not_ready_while_stopping(app: FastAPI, client: TestClient) -> None:
    client.portal.call(app.state.lifecycle.drain)  # type: ignore[union-attr]
    for path in ("/ready", "/live"):
        response = client.get(path)
        assert (response.status_code, response.json()) == (503, {"status": "stopping"})


# --- figures ----------------------------------------------------------------------------------


def _figure(client: TestClient, name: str, **labels: str) -> float:
    for line in client.get("/metrics").text.splitlines():
        if line.startswith(name) and all(f'{k}="{v}"' in line for k, v in labels.items()):
            return float(line.rpartition(" ")[2])
    return 0.0


def test_requests_replies_and_refusals_are_counted(client: TestClient) -> None:
    client.post("/ask", json={"text": _QUESTION})
    client.post("/ask", json={"text": "Who won the chess championship in 1972?"})
    client.post("/ask", json={"text": ""})
    client.get("/a/b/c")
    client.post("/chat/stream", json={"message": _QUESTION})
    assert _figure(client, "bythebook_requests_total", route="/ask", status="200") == 2
    assert _figure(client, "bythebook_requests_total", route="/ask", status="400") == 1
    assert _figure(client, "bythebook_requests_total", route="unmatched", status="404") == 1
    assert _figure(client, "bythebook_refusals_total") == 1
    assert _figure(client, "bythebook_replies_total", confidence="insufficient") == 1
    for stage in ("retrieval", "generation", "total"):
        assert _figure(client, "bythebook_stage_seconds_count", stage=stage) == 3
    assert _figure(client, "bythebook_index_generation_info", vectors="ready") == 1
    assert _figure(client, "bythebook_streams_open") == 0
    assert _figure(client, "bythebook_question_cache_total", result="hit") == 1
    assert _figure(client, "bythebook_question_cache_total", result="miss") == 2


def test_two_applications_have_separate_metrics(library: Book, client: TestClient) -> None:
    client.post("/ask", json={"text": _QUESTION})
    with TestClient(create_app(library)) as other:
        assert _figure(other, "bythebook_requests_total", route="/ask") == 0


# --- the log ----------------------------------------------------------------------------------


def test_each_question_is_logged_as_one_line_without_its_text(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client.post("/ask", json={"text": _QUESTION}, headers={"x-request-id": "one"})
    client.post("/chat/run", json={"message": "Who won the chess match in 1972?"})
    client.post("/chat/stream", json={"message": _QUESTION})
    client.post("/ask", json={"text": ""})
    client.get("/health")
    answered, refused, streamed, rejected = _lines(caplog)
    assert answered["request_id"] == "one"
    assert (answered["contract"], answered["outcome"]) == ("ask", "answered")
    assert (refused["contract"], refused["outcome"]) == ("chat", "refused")
    assert (streamed["route"], streamed["outcome"]) == ("/chat/stream", "answered")
    assert (rejected["status"], rejected["outcome"]) == (400, "rejected")
    assert refused["refusal_type"] == "low_relevance"
    assert answered["generation"] == streamed["generation"]
    for name in ("retrieval_ms", "generation_ms", "total_ms", "confidence"):
        assert isinstance(answered[name], float)
    assert "kettle" not in caplog.text
    assert "chess" not in caplog.text


def test_question_text_is_logged_if_enabled(
    library: Book, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = Settings.model_validate({"log": {"questions": True}})
    with TestClient(create_app(library, settings)) as client:
        client.post("/ask", json={"text": "kettle\r\nfake: line"})
    [line] = _lines(caplog)
    assert line["question"] == "kettle\r\nfake: line"


async def test_health_reports_the_model_and_failed_writes(book_folder: Path) -> None:
    failures = [WriterFailed("openai:x is not available.")]
    log = LogQueue(FragileLog())
    failure = lambda: failures[0] if failures else None  # noqa: E731
    book = await small_library(book_folder, log=log, writer_failure=failure)
    LoggedRequest(Question("Why?"), Asker(), mode="standard_rag", log=log).end(None)
    await log.flush()
    states = await book.health()
    assert states["writer"] == "openai:x is not available."
    assert states["database"] == "Nothing can be stored: The database did not answer."
    assert (await book.stores())["database"] == "ok"  # the server stays ready: it answers
    failures.clear()
    assert (await book.health())["writer"] == "ok"


# --- the form of a line


def _written(message: str, *args: object, **fields: object) -> str:
    record = logging.LogRecord("any.library", logging.INFO, "", 0, message, args, None)
    setattr(record, FIELDS, fields)
    return JsonFormatter().format(record)


@given(st.text(), st.text())
def test_any_record_is_one_written(message: str, value: str) -> None:
    line = _written("%s", message, value=value)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["logger"] == "any.library"


_SECRET = "s3cr3t-Value.0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {_SECRET}",
        f"authorization: {_SECRET}",
        f"'Authorization': 'Basic {_SECRET}'",
        f"(b'authorization', b'Bearer {_SECRET}')",
        f"Proxy-Authorization: Digest {_SECRET}",
        f"X-API-Key: {_SECRET}",
        f'{{"api_key": "{_SECRET}"}}',
        f"OPENAI_API_KEY={_SECRET}",
        f"Cookie: session={_SECRET}; other={_SECRET}",
        f"Set-Cookie: session={_SECRET}; HttpOnly",
        f"GET /search?api_key={_SECRET}&q=kettle",
        f"access_token={_SECRET}",
        f"client_secret: {_SECRET}",
        f"password={_SECRET}",
        f"it said Bearer {_SECRET} and went",
        f"the key btk_{_SECRET} was used",
        f"sk-{_SECRET}",
        f"postgresql+psycopg://reader:{_SECRET}@db/book",
    ],
)
def test_secrets_are_redacted(text: str) -> None:
    for line in (_written(text), _written("%s", text), _written("fine", header=text)):
        assert _SECRET not in line
        assert "redacted" in line


@pytest.mark.parametrize(
    "text", ["A kettle boils at 100 degrees.", "tokens: none", "https://example.org/a?b=c"]
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact(text) == text


def test_an_exception_is_part_of_its_written() -> None:
    try:
        raise RuntimeError(f"api_key={_SECRET}\nand more")
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert _SECRET not in line
    assert "RuntimeError" in json.loads(line)["exception"]


def test_configuration_is_valid() -> None:
    logging.config.DictConfigurator(configuration())
    assert configuration()["root"]["handlers"] == ["lines"]
