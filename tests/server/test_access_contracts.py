"""Access control rejects requests in the error format of each contract."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from bythebook.access_stores import open_access_stores
from bythebook.book import Book
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import Settings
from bythebook.contracts import ask as ask_contract
from bythebook.contracts import chat, envelope, plain
from bythebook.contracts import query as query_contract
from bythebook.server.access import AccessControl, make_key, open_access
from bythebook.server.app import create_app
from bythebook.server.contracts.openai import completions as openai
from bythebook.server.contracts.registry import CONTRACTS
from tests.server.access_fixtures import PEPPER

_QUESTION = "At how many degrees does a kettle boil water?"
_ROUTES: list[tuple[str, dict[str, Any], Any]] = [
    ("/query", {"text": _QUESTION}, query_contract.QueryError),
    ("/ask", {"text": _QUESTION}, ask_contract.AgentError),
    ("/search", {"text": _QUESTION}, ask_contract.AgentError),
    ("/api/v2/query", {"query": _QUESTION}, envelope.QueryResponse),
    ("/api/query", {"query": _QUESTION}, envelope.QueryResponse),
    ("/api/v1/query", {"query": _QUESTION}, plain.PlainError),
    ("/chat/run", {"message": _QUESTION}, chat.ChatError),
    ("/chat/stream", {"message": _QUESTION}, chat.ChatError),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": _QUESTION}]},
        openai.OpenAIError,
    ),
]


@contextmanager
def served(
    library: Book, rules: Rules | None = None, *, needs_keys: bool = True
) -> Iterator[tuple[TestClient, str]]:
    stores = open_access_stores()
    access = AccessControl(rules or Rules(), stores, needs_keys=needs_keys, pepper=PEPPER)
    with TestClient(create_app(library, access=access), client=("198.51.100.9", 1)) as client:
        text, key = make_key(PEPPER)
        assert client.portal is not None
        client.portal.call(stores.keys.add, key)
        yield client, text


_LONGEST: list[tuple[str, dict[str, int]]] = [  # the limits of each contract, in characters
    ("/query", {"text": 2000}),
    ("/ask", {"text": 2000, "selected_text": 5000, "page_url": 2000}),
    ("/search", {"text": 2000, "selected_text": 5000, "page_url": 2000}),
    ("/api/v2/query", {"query": 500, "selected_text": 5000, "page_url": 2000}),
    ("/api/query", {"query": 500, "selected_text": 5000, "page_url": 2000}),
    ("/chat/run", {"message": 1000, "selected_text": 5000, "page_url": 2000}),
    ("/chat/stream", {"message": 1000, "selected_text": 5000, "page_url": 2000}),
]


@pytest.mark.parametrize(("path", "lengths"), _LONGEST)
@pytest.mark.parametrize("letter", ["ا", "字", "🤖"])
def test_largest_valid_request_fits_the_body_limit(
    client: TestClient, path: str, lengths: dict[str, int], letter: str
) -> None:
    body = {name: letter * length for name, length in lengths.items()}
    escaped = json.dumps(body).encode("ascii")  # as `requests` sends it
    for content in (escaped, json.dumps(body, ensure_ascii=False).encode()):
        told = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert told.status_code == 200, told.text
    first = next(iter(lengths))
    too_long = client.post(path, json={**body, first: letter * (lengths[first] + 1)})
    assert too_long.status_code == 400


@pytest.mark.parametrize("letter", ["ا" * 30, "🤖" * 15])
def test_plain_request_of_700_long_words_is_accepted(client: TestClient, letter: str) -> None:
    body = {"query": f"{letter} " * 500, "selected_text": f"{letter} " * 200}
    content = json.dumps(body).encode("ascii")
    told = client.post(
        "/api/v1/query", content=content, headers={"Content-Type": "application/json"}
    )
    assert told.status_code == 200, told.text


@pytest.mark.parametrize(("path", "body", "model"), _ROUTES)
def test_every_rejection_has_the_error_shape_of_the_contract(
    library: Book, path: str, body: dict[str, Any], model: Any
) -> None:
    with served(library, Rules(per_key=1, per_address=1)) as (client, text):
        key = {"X-API-Key": text, "Idempotency-Key": "one"}
        answers = [
            (401, client.post(path, json=body)),
            (413, client.post(path, content=b"x" * 160_000, headers=key)),
            (200, client.post(path, json=body, headers=key)),
            (429, client.post(path, json=body, headers=key)),
        ]
    for status, answer in answers:
        assert answer.status_code == status, answer.text
        assert text not in answer.text
        if status != 200:
            TypeAdapter(model).validate_python(answer.json())
    assert int(answers[3][1].headers["retry-after"]) >= 1
    with served(library) as (client, text):
        key = {"X-API-Key": text, "Idempotency-Key": "one"}
        assert client.post(path, json=body, headers=key).status_code == 200
        changed = client.post(path, json={**body, "top_k": 1}, headers=key)
        assert changed.status_code == 422
        TypeAdapter(model).validate_python(changed.json())


def test_every_contract_route_requires_a_key(library: Book) -> None:
    """Every route of the OpenAPI document except those for operators."""
    with served(library) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        for path, operations in paths.items():
            for method, described in operations.items():
                there = path.replace("{", "").replace("}", "")
                status = client.request(method, there).status_code
                asks = described["tags"][0] in CONTRACTS
                assert (status == 401) is asks, f"{method} {path}: {status}"
        assert client.get("/").status_code == 200


def test_threads_belong_to_the_key_that_started_them(library: Book) -> None:
    stores = open_access_stores()
    access = AccessControl(Rules(), stores, needs_keys=True, pepper=PEPPER)
    thread = f"/chat/threads/{(session := str(uuid.uuid4()))}"
    with TestClient(create_app(library, access=access)) as client:
        assert client.portal is not None
        holders = []
        for _ in range(2):
            text, key = make_key(PEPPER)
            client.portal.call(stores.keys.add, key)
            holders.append({"X-API-Key": text})
        mine, theirs = holders
        body = {"message": _QUESTION, "session_id": session}
        assert client.post("/chat/run", json=body, headers=mine).status_code == 200
        assert client.get(thread, headers=theirs).status_code == 404
        assert client.delete(thread, headers=theirs).status_code == 404
        assert client.post("/chat/run", json=body, headers=theirs).status_code == 404
        assert len(client.get(thread, headers=mine).json()["messages"]) == 2
        assert client.delete(thread, headers=mine).status_code == 204


def test_rejection_is_counted_and_no_key_is_logged(
    library: Book, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with served(library) as (client, text):
        refused = client.post("/ask", json={"text": _QUESTION}, headers={"X-API-Key": text + "x"})
        assert refused.status_code == 401 and refused.headers["x-request-id"]
        client.post("/ask", json={"text": _QUESTION}, headers={"X-API-Key": text})
        metrics = client.get("/metrics").text
    written = caplog.text + json.dumps([vars(record) for record in caplog.records], default=str)
    assert text not in written + metrics
    assert 'route="/ask",status="401"' in metrics.replace(" ", "")


@pytest.mark.parametrize(
    ("path", "body", "id_of"),
    [
        ("/api/v2/query", {"query": ""}, lambda told: told["metadata"]["request_id"]),
        ("/api/v2/query", {"query": _QUESTION}, lambda told: told["metadata"]["request_id"]),
        ("/chat/run", {"message": ""}, lambda told: told["request_id"]),
    ],
)
def test_request_id_is_equal_in_header_body_and_log(
    client: TestClient, path: str, body: Any, id_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bythebook")
    for given in ({}, {"X-Request-Id": uuid.uuid4().hex}):
        caplog.clear()
        answer = client.post(path, json=body, headers=given)
        spelled = answer.headers["x-request-id"]
        [line] = [record for record in caplog.records if record.msg == "question"]
        assert str(uuid.UUID(spelled)) == spelled
        assert id_of(answer.json()) == line.fields["request_id"] == spelled  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/api/v2/query", "/api/query"])
def test_envelope_errors_contain_the_session(library: Book, path: str) -> None:
    session = str(uuid.uuid4())
    body = {"query": _QUESTION, "session_id": session}
    with served(library, Rules(per_session=1)) as (client, text):
        key = {"X-API-Key": text, "Idempotency-Key": "one"}
        answers = [
            (200, client.post(path, json=body, headers=key)),
            (429, client.post(path, json=body, headers=key)),
        ]
    with served(library) as (client, text):
        key = {"X-API-Key": text, "Idempotency-Key": "one"}
        answers += [
            (400, client.post(path, json={**body, "query": ""}, headers=key)),
            (400, client.post(path, json={**body, "top_k": 0}, headers=key)),
            (200, client.post(path, json=body, headers=key)),
            (422, client.post(path, json={**body, "top_k": 3}, headers=key)),
        ]
        unknown = [
            client.post(path, json={**body, "session_id": str(uuid.uuid1())}, headers=key),
            client.post(path, json=body),  # without a key, nobody reads the body
        ]
    for status, answer in answers:
        assert answer.status_code == status
        assert answer.json()["metadata"]["session_id"] == session, answer.text
    for answer in unknown:
        assert answer.json()["metadata"]["session_id"] is None


async def test_envelope_replies_are_never_stored(library: Book, tmp_path: Path) -> None:
    """A repeated request is answered again; a changed one with the same key is rejected."""
    settings = Settings(home=tmp_path)
    chosen = "The harmonica of the kettle plays at ninety degrees exactly."
    body = {"query": "At how many degrees does the harmonica play?", "selected_text": chosen}
    headers = {"Idempotency-Key": "one"}
    with TestClient(create_app(library, settings, open_access(settings))) as client:
        first, again = (client.post("/api/v2/query", json=body, headers=headers) for _ in range(2))
        changed = client.post("/api/v2/query", json={**body, "top_k": 3}, headers=headers)
    assert first.json()["status"] == "success" and "harmonica" in first.text
    assert first.json()["answer"] == again.json()["answer"]
    assert "idempotent-replayed" not in again.headers
    assert changed.status_code == 422
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert "access.db" in {file.name for file in files}
    for file in files:
        assert b"harmonica" not in file.read_bytes(), file.name
