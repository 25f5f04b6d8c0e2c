"""``top_k`` bounds what is counted, listed and cited, and every marker leads to a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.app import create_app
from bythebook.types import Answer, Question
from tests.server.asgi_client import events_of
from tests.support.samples import SAMPLE_BOOK, read

_QUESTIONS = (
    "What is a topic and what is a service?",
    "What is the difference between a topic and a service?",
    "What is URDF? What is a topic? What is a service? How do I calibrate a camera?",
    "Which of the frames should a local controller use, and what goes wrong in the other one?",
    "Summarize module 1",
    "What does the book say about topics?",
    "What is a topic?",
)
_TOP_KS = (1, 2, 3, 5, 10)
_LEAST = 0.05  # the fake embedder's scores are low


@pytest.fixture
async def library() -> Book:
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
    )
    await library.ingest(read(SAMPLE_BOOK / "docs"))
    return library


@pytest.fixture
def client(library: Book) -> Iterator[TestClient]:
    with TestClient(create_app(library), "http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        yield client


def _post(client: TestClient, path: str, **body: Any) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def _stream(client: TestClient, body: dict[str, Any]) -> str:
    return client.post("/chat/stream", json=body).text


def _markers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\[(\d+)\]", text)}


def _places(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(row["section"], row["url"]) for row in rows}


def test_a_reply_stays_within_top_k(client: TestClient) -> None:
    for question, top_k in product(_QUESTIONS, _TOP_KS):
        envelope = _post(client, "/api/v2/query", query=question, top_k=top_k)
        assert envelope["metadata"]["chunks_retrieved"] <= top_k
        if envelope["answer"]:
            citations = envelope["answer"]["citations"]
            assert _markers(envelope["answer"]["text"]) == set(range(1, len(citations) + 1))

        ask = _post(client, "/ask", text=question, top_k=top_k, relevance_threshold=_LEAST)
        assert 1 <= len(ask["sources"]) <= top_k
        assert _places(ask["citations"]) == _places(ask["sources"])
        assert _markers(ask["answer"]) == set(range(1, len(ask["sources"]) + 1))

        body = {"message": question, "top_k": top_k, "whole_evidence": True}
        events = {event.name: event.body for event in events_of(_stream(client, body))}
        assert events["retrieval"]["num_chunks"] <= top_k
        for chat in (_post(client, "/chat/run", **body), events["done"]):
            assert len(chat["sources"]) <= top_k
            assert _places(chat.get("citations", [])) == _places(chat["sources"])
            assert _markers(chat["response"]) == set(range(1, len(chat["sources"]) + 1))


def test_contracts_without_top_k_list_five_sources_at_most(client: TestClient) -> None:
    for question in _QUESTIONS:
        for path, field in (("/query", "text"), ("/api/v1/query", "query")):
            reply = _post(client, path, **{field: question})
            assert len(reply["sources"]) <= 5
            assert _markers(reply["answer"]) == set(range(1, len(reply["sources"]) + 1))


async def test_the_passages_of_an_answer_are_at_most_top_k(library: Book) -> None:
    for question, top_k in product(_QUESTIONS, _TOP_KS):
        reply = await library.reply(Question(question, top_k=top_k, min_score=_LEAST))
        assert isinstance(reply.outcome, Answer)
        cited = {citation.passage_id for citation in reply.outcome.citations}
        evidence = {hit.passage.id for hit in reply.evidence.hits}
        assert cited <= evidence
        assert len(evidence) <= top_k
        assert len(reply.evidence.considered) <= top_k
        assert reply.evidence.confidence.count <= top_k
