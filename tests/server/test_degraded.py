"""Replies made without vector search are marked in every contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from bythebook.server.app import create_app
from tests.server.asgi_client import events_of
from tests.support.samples import read
from tests.test_keyword_fallback import QUESTION, Scene

_UNKNOWN = "Who won the football world cup of 1974?"
_PATHS = {
    "/query": "text",
    "/ask": "text",
    "/api/v2/query": "query",
    "/api/query": "query",
    "/api/v1/query": "query",
    "/chat/run": "message",
}
_LOW = {"/chat/run": {"similarity_threshold": 0.3}, "/query": {}}


@pytest.fixture
async def scene(book_folder: Path) -> Scene:
    scene = Scene(retry_s=0.0)
    await scene.library.ingest(read(book_folder))
    return scene


def _cut(scene: Scene, service: str) -> None:
    scene.embedder.failing = service == "embedder"
    scene.store.line.cut = service == "index"


def _body(path: str, text: str) -> dict[str, Any]:
    return {_PATHS[path]: text} | _LOW.get(path, {})


@pytest.mark.parametrize("service", ["embedder", "index"])
def test_keyword_answers_are_marked_as_degraded(scene: Scene, service: str) -> None:
    with TestClient(create_app(scene.library)) as client:
        for path in _PATHS:
            response = client.post(path, json=_body(path, "What does a kettle boil?"))
            assert response.status_code == 200
            assert "x-degraded" not in response.headers
            assert "degraded" not in response.json()
        _cut(scene, service)
        marked = {path: client.post(path, json=_body(path, QUESTION.text)) for path in _PATHS}
        found = client.post("/search", json={"text": QUESTION.text})
        completion = client.post(
            "/v1/chat/completions",
            json={"model": "bythebook", "messages": [{"role": "user", "content": QUESTION.text}]},
        )
    for path, response in (*marked.items(), ("/search", found), ("/v1", completion)):
        assert response.status_code == 200, (path, response.text)
        assert response.headers["x-degraded"] == "keyword-search"
        assert response.json()["degraded"] == "keyword-search"


@pytest.mark.parametrize(
    ("service", "errors"),
    [
        (
            "embedder",
            {
                "/query": {"error_type": "EmbeddingFailed"},
                "/ask": {"error_type": "retrieval"},
                "/api/v2/query": {"code": "COHERE_FAILURE"},
                "/api/query": {"code": "COHERE_FAILURE"},
                "/api/v1/query": {},
                "/chat/run": {"error_code": "SERVICE_UNAVAILABLE"},
            },
        ),
        (
            "index",
            {
                "/query": {"error_type": "SearchFailed"},
                "/ask": {"error_type": "retrieval"},
                "/api/v2/query": {"code": "QDRANT_TIMEOUT"},
                "/api/query": {"code": "QDRANT_TIMEOUT"},
                "/api/v1/query": {},
                "/chat/run": {"error_code": "SERVICE_UNAVAILABLE"},
            },
        ),
    ],
)
def test_question_without_keyword_hits_is_an_error_not_a_refusal(
    scene: Scene, service: str, errors: dict[str, dict[str, str]]
) -> None:
    with TestClient(create_app(scene.library)) as client:
        _cut(scene, service)
        responses = {path: client.post(path, json=_body(path, _UNKNOWN)) for path in _PATHS}
    for path, expected in errors.items():
        response = responses[path]
        assert response.status_code == 503, (path, response.text)
        body = response.json()
        told = body.get("error") or body
        assert expected.items() <= told.items()


def test_stream_is_marked_as_degraded_at_its_end(scene: Scene) -> None:
    with TestClient(create_app(scene.library)) as client:
        _cut(scene, "embedder")
        answered = client.post("/chat/stream", json=_body("/chat/run", QUESTION.text))
        unknown = client.post("/chat/stream", json=_body("/chat/run", _UNKNOWN))
    assert events_of(answered.text)[-1].body["degraded"] == "keyword-search"
    assert [event.name for event in events_of(unknown.text)] == ["session", "error"]


@pytest.mark.parametrize("service", ["embedder", "index"])
def test_a_search_that_finds_too_little_reports_the_failed_service(
    scene: Scene, service: str
) -> None:
    with TestClient(create_app(scene.library)) as client:
        _cut(scene, service)
        weak = client.post("/search", json={"text": QUESTION.text, "relevance_threshold": 1.0})
        found = client.post("/reader/search", json={"text": QUESTION.text})
    assert weak.status_code == 503
    assert weak.json()["error_type"] == "retrieval"
    assert found.status_code == 200
    assert found.json()["results"]
