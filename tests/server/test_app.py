"""The application over its own contracts, without a socket."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.refusals import BOOK_DOES_NOT_SAY, SELECTION_DOES_NOT_SAY
from bythebook.server.app import create_app
from tests.server.conftest import FragileEmbedder
from tests.support.samples import read

_QUESTION = "At how many degrees does a kettle boil water?"


def test_every_marker_names_a_citation_in_order_of_first_use(client: TestClient) -> None:
    body = client.post("/ask", json={"text": "How do I build a kite?"}).json()
    used = [int(number) for number in re.findall(r"\[(\d+)\]", body["answer"])]
    assert sorted(set(used)) == [citation["number"] for citation in body["citations"]]
    assert list(dict.fromkeys(used)) == sorted(set(used))


def test_ask_answers_and_refuses(client: TestClient) -> None:
    body = client.post("/ask", json={"text": _QUESTION}).json()
    assert body["answer"].startswith("A kettle boils water at 100 degrees Celsius. ")
    assert body["has_relevant_context"] is True
    assert set(body["sources"][0]) == {"chapter", "section", "url", "relevance_score"}
    assert len(body["sources"]) == len(body["citations"])
    for name in ("retrieval_time_ms", "generation_time_ms", "total_time_ms"):
        assert body[name] >= 0
    body = client.post("/ask", json={"text": "Who won the chess championship in 1972?"}).json()
    assert body["answer"] == BOOK_DOES_NOT_SAY
    assert (body["has_relevant_context"], body["sources"]) == (False, [])


def test_a_selection_fences_the_answer(client: TestClient) -> None:
    selection = "Cut two sticks of spruce. Tie them into a cross."
    body = client.post("/ask", json={"text": _QUESTION, "selected_text": selection}).json()
    assert body["answer"] == SELECTION_DOES_NOT_SAY
    assert body["refusal_type"] == "selected_text_missing"


def test_chat_answers(client: TestClient) -> None:
    session = str(uuid.uuid4())
    response = client.post("/chat/run", json={"message": _QUESTION, "session_id": session})
    body = response.json()
    assert response.status_code == 200
    assert set(body) == {
        *("response", "confidence", "sources", "session_id", "timestamp"),
        *("confidence_level", "should_answer", "citations"),
    }
    assert body["session_id"] == session
    assert body["should_answer"] is True
    assert body["confidence_level"] in {"high", "medium", "low"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])
    assert set(body["sources"][0]) == {
        *("chunk_text", "similarity_score", "chapter", "section", "url", "chunk_index"),
    }


def test_chat_refuses_by_should_answer(client: TestClient) -> None:
    body = client.post("/chat/run", json={"message": "Who won the chess match in 1972?"}).json()
    assert body["should_answer"] is False
    assert body["confidence_level"] == "insufficient"
    assert body["confidence"] == 0
    assert body["sources"] == []


def test_a_service_that_is_down_is_a_typed_503(
    embedder: FragileEmbedder, client: TestClient
) -> None:
    services = {"database": "ok", "index": "ok", "embedder": "ok"}
    health = client.get("/health")
    assert (health.status_code, health.json()["services"]) == (200, services)
    embedder.broken = True
    response = client.post("/ask", json={"text": _QUESTION})
    assert response.status_code == 503
    assert response.json()["error_type"] == "retrieval"
    chat = client.post("/chat/run", json={"message": _QUESTION})
    assert (chat.status_code, chat.json()["error_code"]) == (503, "SERVICE_UNAVAILABLE")
    health = client.get("/health")
    assert health.status_code == 503
    assert health.json()["services"] == services | {"embedder": "The embedder did not answer."}


async def test_a_new_generation_is_picked_up_between_two_questions(
    library: Book, client: TestClient, book_folder: Path
) -> None:
    question = {"text": "What colour is a zeppelin?"}
    assert client.post("/ask", json=question).json()["has_relevant_context"] is False
    (book_folder / "zeppelin.md").write_text("# Zeppelins\n\nThe colour of a zeppelin is silver.\n")
    await library.ingest(
        read(book_folder),
    )
    assert "silver" in client.post("/ask", json=question).json()["answer"]


@pytest.mark.parametrize("keys", ["required", "open"])
@pytest.mark.parametrize("path", ["/", "/docs", "/admin"])
def test_a_page_loads_nothing_from_elsewhere(library: Book, path: str, keys: str) -> None:
    settings = Settings.model_validate({"access": {"keys": keys}})
    with TestClient(create_app(library, settings)) as client:
        page = client.get(path)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|\{\{", page.text)
        loaded = re.findall(r'<(?:script|link)\b[^>]*?(?:src|href)="\./([^"]*)"', page.text)
        assert len(loaded) >= 3
        for name in (*loaded, "openapi.json"):
            assert client.get(f"/{name}").status_code == 200
