"""Errors of invalid requests name the field, the limit and what was sent."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

_PATHS = {
    "/query": "text",
    "/ask": "text",
    "/search": "text",
    "/api/v2/query": "query",
    "/api/v1/query": "query",
    "/chat/run": "message",
}
_V1 = "00000000-0000-1000-8000-000000000000"


def _message(body: dict[str, Any]) -> str:
    error = body.get("error") or body
    return str(error.get("message") or error.get("detail"))


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/query", {"text": "a" * 2001}, "text: has 2001 characters; at most 2000 are allowed."),
        ("/query", {}, "text: is missing."),
        ("/query", [], "The body is a list; send a JSON object."),
        ("/ask", {"text": "a", "top_k": 21}, "top_k: is 21; at most 20 is allowed."),
        (
            "/ask",
            {"text": "a", "relevance_threshold": True},
            "relevance_threshold: true is not a number.",
        ),
        (
            "/api/v2/query",
            {"query": "a", "selected_text": "  abc defg  "},
            "selected_text: has 8 characters (after trimming); at least 10 are needed.",
        ),
        (
            "/api/v2/query",
            {"query": "a", "session_id": _V1},
            f'session_id: "{_V1}" is not a UUID of version 4.',
        ),
        ("/api/v2/query", {"query": " "}, "Query cannot be empty."),
        ("/api/v1/query", {"query": "w " * 501}, "Query exceeds 500 words (has 501)."),
        ("/chat/run", {"message": "a", "stream": "yes"}, 'stream: "yes" is not true or false.'),
        (
            "/feedback",
            {"verdict": "sideways"},
            'verdict: "sideways" is not allowed; use "up" or "down".',
        ),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": 7}]},
            "messages.0.content: 7 is not a text.",
        ),
    ],
)
def test_invalid_request_is_explained(
    client: TestClient, path: str, body: object, said: str
) -> None:
    response = client.post(path, json=body)
    assert response.status_code == 400
    assert _message(response.json()).startswith(said)


def test_invalid_path_and_query_parameters_are_explained(client: TestClient) -> None:
    thread = client.get("/chat/threads/nope").json()
    assert thread["message"] == 'thread_id: "nope" is not a UUID.'
    page = client.get("/chat/threads", params={"limit": 0}).json()
    assert page["message"].startswith("limit: ")
    assert page["message"].endswith("; at least 1 is needed.")
    assert client.get("/chat/threads?offset=x").json()["message"] == (
        'offset: "x" is not a whole number.'
    )


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("text/plain; charset=utf-8", "The Content-Type is text/plain; send application/json."),
        (
            "application/x-www-form-urlencoded",
            "The Content-Type is application/x-www-form-urlencoded; send application/json.",
        ),
        ("<b>", "The Content-Type is not JSON; send application/json."),
        (None, "The Content-Type is missing; send application/json."),
    ],
)
def test_wrong_content_type_is_explained(
    client: TestClient, path: str, header: str | None, said: str
) -> None:
    headers = {} if header is None else {"Content-Type": header}
    response = client.post(path, content=b'{"text": "kettle"}', headers=headers)
    assert response.status_code == 400
    assert _message(response.json()).startswith(said)


@pytest.mark.parametrize("path", _PATHS)
def test_error_does_not_repeat_a_long_text(client: TestClient, path: str) -> None:
    response = client.post(path, json={_PATHS[path]: [f"secret {'x' * 5000}"]})
    assert response.status_code == 400
    assert not re.search("secret|xxx|Input should|items", response.text)


def test_null_session_starts_a_new_thread(client: TestClient) -> None:
    body = {"message": "At how many degrees does a kettle boil water?", "session_id": None}
    sessions = {client.post("/chat/run", json=body).json()["session_id"] for _ in range(2)}
    assert len(sessions) == 2
