"""The application over its own contracts, without a socket."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.refusals import BOOK_DOES_NOT_SAY, SELECTION_DOES_NOT_SAY
from tests.server.conftest import FragileEmbedder
from tests.support.samples import read

_QUESTION = "At how many degrees does a kettle boil water?"


def test_ask_answers(client: TestClient) -> None:
    response = client.post("/ask", json={"text": _QUESTION})
    body = response.json()
    assert response.status_code == 200
    assert body["answer"].startswith("A kettle boils water at 100 degrees Celsius. ")
    assert body["has_relevant_context"] is True
    assert set(body["sources"][0]) == {"chapter", "section", "url", "relevance_score"}
    assert len(body["sources"]) == len(body["citations"])
    for name in ("retrieval_time_ms", "generation_time_ms", "total_time_ms"):
        assert body[name] >= 0


def test_every_marker_names_a_citation_in_order_of_first_use(client: TestClient) -> None:
    body = client.post("/ask", json={"text": "How do I build a kite?"}).json()
    used = [int(number) for number in re.findall(r"\[(\d+)\]", body["answer"])]
    assert sorted(set(used)) == [citation["number"] for citation in body["citations"]]
    assert list(dict.fromkeys(used)) == sorted(set(used))


def test_a_refusal_is_200_with_no_sources(client: TestClient) -> None:
    response = client.post("/ask", json={"text": "Who won the chess championship in 1972?"})
    body = response.json()
    assert response.status_code == 200
    assert body["answer"] == BOOK_DOES_NOT_SAY
    assert (body["has_relevant_context"], body["sources"]) == (False, [])


def test_a_selection_fences_the_answer(client: TestClient) -> None:
    selection = "Cut two sticks of spruce. Tie them into a cross."
    body = client.post("/ask", json={"text": _QUESTION, "selected_text": selection}).json()
    assert body["answer"] == SELECTION_DOES_NOT_SAY
    assert body["refusal_type"] == "selected_text_missing"


def test_search_gives_a_result_set(client: TestClient) -> None:
    body = client.post("/search", json={"text": "kettle", "top_k": 2}).json()
    assert body["total_count"] == 2
    assert body["results"][0]["section_title"] == "Kettles"
    assert body["results"][0]["score"] >= body["results"][1]["score"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": " \n "},
        {"text": "x" * 2001},
        {"text": "kite", "top_k": 0},
        {"text": "kite", "top_k": 21},
        {"text": "kite", "relevance_threshold": 1.1},
        {"text": "kite", "selected_text": "short"},
        {"text": ["kite"]},
        [],
    ],
)
def test_a_bad_query_is_an_agent_error(client: TestClient, body: object) -> None:
    for path in ("/ask", "/search"):
        response = client.post(path, json=body)
        assert response.status_code == 400
        assert response.json()["error_type"] == "validation"
        assert response.json()["message"]
        assert response.json()["details"] is None


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


def test_chat_makes_a_session_when_none_is_given(client: TestClient) -> None:
    body = client.post("/chat/run", json={"message": _QUESTION}).json()
    assert uuid.UUID(body["session_id"]).version == 4


def test_chat_refuses_by_should_answer(client: TestClient) -> None:
    body = client.post("/chat/run", json={"message": "Who won the chess match in 1972?"}).json()
    assert body["should_answer"] is False
    assert body["confidence_level"] == "insufficient"
    assert body["confidence"] == 0
    assert body["sources"] == []


async def test_every_message_of_a_session_is_kept(library: Book, client: TestClient) -> None:
    session = str(uuid.uuid4())
    for message in (_QUESTION, "And what about kites?"):
        client.post("/chat/run", json={"message": message, "session_id": session})
    thread = await library.threads.read(session, owner=None)
    assert thread is not None
    assert [m.role for m in thread.messages] == ["user", "assistant", "user", "assistant"]
    assert thread.messages[2].content == "And what about kites?"


@pytest.mark.parametrize(
    "body",
    [
        {"message": ""},
        {"message": "x" * 1001},
        {"message": "kite", "session_id": "not a uuid"},
        {"message": "kite", "session_id": str(uuid.uuid1())},
        {"message": "kite", "top_k": 11},
        {"message": "kite", "similarity_threshold": -0.1},
    ],
)
def test_a_bad_chat_request_is_a_chat_error(client: TestClient, body: dict[str, object]) -> None:
    response = client.post("/chat/run", json=body)
    assert response.status_code == 400
    assert set(response.json()) == {"error_code", "message", "suggested_action", "request_id"}


def test_a_service_that_is_down_is_a_typed_503(
    embedder: FragileEmbedder, client: TestClient
) -> None:
    embedder.broken = True
    response = client.post("/ask", json={"text": _QUESTION})
    assert response.status_code == 503
    assert response.json()["error_type"] == "retrieval"
    chat = client.post("/chat/run", json={"message": _QUESTION})
    assert (chat.status_code, chat.json()["error_code"]) == (503, "SERVICE_UNAVAILABLE")
    health = client.get("/health")
    assert health.status_code == 503
    assert health.json()["services"] == {
        "database": "ok",
        "index": "ok",
        "embedder": "The embedder did not answer.",
    }


def test_health_names_each_service(client: TestClient) -> None:
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json()["services"] == {"database": "ok", "index": "ok", "embedder": "ok"}


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


def test_the_page_allows_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<script>|<style|style=|onclick", page.text)
    for path in re.findall(r'(?:src|href)="([^":]+)"', page.text):
        assert client.get(f"/{path}").status_code == 200


def test_openapi_describes_the_routes(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/ask", "/search", "/chat/run", "/health"} <= set(paths)
    assert "400" in paths["/ask"]["post"]["responses"]
