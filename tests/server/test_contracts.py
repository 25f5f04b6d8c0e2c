"""The five contracts on one small book: answers, refusals, errors and limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.contracts import chat as answers
from bythebook.contracts import envelope, plain
from bythebook.contracts import query as query_documents
from bythebook.contracts.fit import by_place, shortened
from bythebook.errors import BookError, Forbidden, NotIngested, StoreFailed, WrongHost
from bythebook.interfaces.conversations import Asker
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.refusals import BOOK_DOES_NOT_SAY, SELECTION_DOES_NOT_SAY
from bythebook.retrieval.search import Findings
from bythebook.server import examples
from bythebook.server.app import create_app
from bythebook.types import Answer, Message, Question, Reply, Sentence
from tests.server.conftest import FragileEmbedder

_QUESTION = "At how many degrees does a kettle boil water?"
_UNKNOWN = "Who won the chess championship in 1972?"
_PATHS = {
    "/query": "text",
    "/ask": "text",
    "/search": "text",
    "/api/v2/query": "query",
    "/api/query": "query",
    "/api/v1/query": "query",
    "/chat/run": "message",
}


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/query", ("is_refusal", True)),
        ("/ask", ("has_relevant_context", False)),
        ("/api/v2/query", ("status", "refused")),
        ("/api/v1/query", ("sources", [])),
        ("/chat/run", ("should_answer", False)),
    ],
)
def test_every_contract_answers_and_refuses(
    client: TestClient, path: str, refused: tuple[str, Any]
) -> None:
    field, told = refused
    extra = {"whole_evidence": True} if path == "/chat/run" else {}
    answer = client.post(path, json={_PATHS[path]: _QUESTION, **extra})
    assert answer.status_code == 200
    assert "100 degrees" in answer.text
    assert answer.json()[field] != told
    refusal = client.post(path, json={_PATHS[path]: _UNKNOWN, **extra})
    assert refusal.status_code == 200
    assert refusal.json()[field] == told
    assert BOOK_DOES_NOT_SAY in refusal.text


def test_envelope_answers_from_the_selection_only(client: TestClient) -> None:
    selection = "A kettle boils water at 100 degrees Celsius. It switches itself off."
    body: dict[str, Any] = {
        "query": _QUESTION,
        "selected_text": selection,
        "page_url": "https://book.example/docs/intro",
    }
    answered = client.post("/api/v2/query", json=body).json()
    assert answered["answer"]["mode"] == "selected_text_only"
    [citation] = answered["answer"]["citations"]
    assert citation["section"] == "Selected text"
    assert citation["source_url"] == "https://book.example/docs/intro"
    assert citation["referenced_text"] in selection
    body["selected_text"] = "Cut two sticks of spruce. Tie them into a cross."
    refused = client.post("/api/v2/query", json=body).json()
    assert refused["refusal"]["reason"] == SELECTION_DOES_NOT_SAY


def test_plain_uses_the_book_besides_a_selection(client: TestClient) -> None:
    selection = "Cut two sticks of spruce. Tie them into a cross."
    body = client.post("/api/v1/query", json={"query": _QUESTION, "selected_text": selection})
    assert "100 degrees" in body.json()["answer"]
    leaning = {"query": "What does this mean?", "selected_text": "Kettles boil water."}
    assert "kettle" in client.post("/api/v1/query", json=leaning).json()["answer"]


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        ({"server": {"api_query": "plain"}}, {}),
        ({"preset": "plain"}, {}),
        ({}, {"BYTHEBOOK_API_QUERY": "plain"}),
    ],
)
def test_api_query_is_plain_by_setting_preset_and_variable(
    library: Book, tmp_path: Path, flags: dict[str, object], environ: dict[str, str]
) -> None:
    settings = load_settings(flags, environ=environ, directory=tmp_path)
    with TestClient(create_app(library, settings)) as client:
        plain = client.post("/api/query", json={"query": _QUESTION}).json()
        assert {"answer", "sources"} <= set(plain)
        assert "status" not in plain
        assert "status" in client.post("/api/v2/query", json={"query": _QUESTION}).json()


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00 x", "\\u0000"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        *((path, {name: "What is a kite HALF?"}) for path, name in _PATHS.items()),
        ("/api/v1/query", {"query": "What is a kite?", "selected_text": "HALF a kite that flies"}),
        ("/ask", {"text": "What is a kite?", "selected_text": "HALF a kite that flies"}),
        ("/ask", {"text": "What is a kite?", "page_url": "https://x.example/HALF"}),
        ("/reader/search", {"text": "kite HALF"}),
        *(
            ("/v1/chat/completions", {"model": "bythebook", "messages": messages})
            for messages in (
                [{"role": "user", "content": "What is a kite HALF?"}],
                [{"role": "user", "content": [{"type": "text", "text": "kite HALF"}]}],
                [{"role": "assistant", "content": "HALF"}, {"role": "user", "content": "Why?"}],
            )
        ),
    ],
)
def test_text_that_is_no_text_is_refused_in_every_field(
    client: TestClient, path: str, body: dict[str, object], half: str
) -> None:
    content = json.dumps(body).replace("HALF", half)
    response = client.post(path, content=content, headers={"content-type": "application/json"})
    assert response.status_code == 400, response.text


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize("text", ["", " \n\t ", 7, None, ["kite"], "ki\0te"])
def test_invalid_question_is_400_in_every_contract(
    client: TestClient, path: str, text: object
) -> None:
    response = client.post(path, json={_PATHS[path]: text})
    assert response.status_code == 400
    assert "Traceback" not in response.text


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"\xe2\x10\xba",
        b'{"text": "\\ud800", "query": "\\ud800", "message": "\\ud800"}',
        b"[" * 20_000,
    ],
)
def test_body_that_is_no_json_object_is_400_in_every_contract(
    client: TestClient, path: str, content: bytes
) -> None:
    response = client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert set(response.json()) == set(client.post(path, json={}).json())  # its contract's shape


def test_failed_service_is_reported_by_every_contract(
    embedder: FragileEmbedder, client: TestClient
) -> None:
    embedder.broken = True
    for path, field in _PATHS.items():
        response = client.post(path, json={field: _QUESTION})
        assert response.status_code == 503, path
    told = client.post("/api/v2/query", json={"query": _QUESTION}).json()
    assert told["error"]["code"] == "COHERE_FAILURE"
    assert client.post("/query", json={"text": "q"}).json()["error_type"] == "EmbeddingFailed"


class _BrokenLibrary(Book):
    """A book in which every question fails with the same error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=MemoryCatalog(),
            threads=MemoryThreads(),
        )
        self._error = error

    async def reply(
        self, question: Question, *, asker: Asker | None = None, history: Sequence[Message] = ()
    ) -> Reply:
        raise self._error

    async def search(self, question: Question) -> Findings:
        raise self._error


def test_missing_book_is_503_without_a_path() -> None:
    error = NotIngested("/home/author/.bythebook holds no book.", hint="Look into /home/author.")
    with TestClient(create_app(_BrokenLibrary(error))) as client:
        for path, field in _PATHS.items():
            response = client.post(path, json={field: _QUESTION})
            assert response.status_code == 503
            assert "/home" not in response.text


def test_store_timeout_is_504_in_envelope_only() -> None:
    error = StoreFailed("The store took a second.", timed_out=True)
    with TestClient(create_app(_BrokenLibrary(error))) as client:
        statuses = {
            path: client.post(path, json={field: _QUESTION}).status_code
            for path, field in _PATHS.items()
        }
    late = {path for path, status in statuses.items() if status == 504}
    assert late == {"/api/v2/query", "/api/query"}
    assert set(statuses.values()) == {503, 504}


# --- answers that fit -----------------------------------------------------------------------------

_sentences = st.lists(
    st.tuples(st.text("ab c\n", min_size=1, max_size=900), st.integers(0, 8)),
    min_size=1,
    max_size=9,
)


def _answer(parts: list[tuple[str, int]], section_of: Callable[[int], str]) -> Reply:
    """Sentences that each cite one of several passages, numbered in order of first use."""
    known = examples.ANSWERED.outcome
    assert isinstance(known, Answer)
    [one] = known.citations
    numbers = {which: n for n, which in enumerate(dict.fromkeys(w for _, w in parts), 1)}
    citations = tuple(
        replace(one, number=n, place=replace(one.place, section=(section_of(which),)))
        for which, n in numbers.items()
    )
    sentences = tuple(Sentence(f"x{text}", (numbers[which],)) for text, which in parts)
    answer = replace(known, sentences=sentences, citations=citations)
    return replace(examples.ANSWERED, outcome=answer)


def _check_markers(reply: Reply) -> None:
    assert isinstance(reply.outcome, Answer)
    used = {number for sentence in reply.outcome.sentences for number in sentence.citations}
    assert sorted(used) == [citation.number for citation in reply.outcome.citations]
    assert reply.outcome.sentences


@given(_sentences, st.integers(40, 3000), st.integers(1, 6))
def test_sentences_that_do_not_fit_are_left_out_whole(
    parts: list[tuple[str, int]], chars: int, sources: int
) -> None:
    whole = _answer(parts, str)
    cut = shortened(whole, chars=chars, sources=sources)
    _check_markers(cut)
    assert isinstance(cut.outcome, Answer)
    assert isinstance(whole.outcome, Answer)
    assert len(cut.outcome.text) <= chars
    assert len(cut.outcome.citations) <= sources
    kept = cut.outcome.sentences
    assert kept == whole.outcome.sentences[: len(kept)] or kept[0].text.endswith("…")


@given(_sentences)
def test_each_section_is_listed_once(parts: list[tuple[str, int]]) -> None:
    merged = by_place(_answer(parts, lambda which: str(which % 3)))
    _check_markers(merged)
    assert isinstance(merged.outcome, Answer)
    places = [citation.place for citation in merged.outcome.citations]
    assert len(places) == len(set(places))
    assert [citation.number for citation in merged.outcome.citations] == list(
        range(1, len(places) + 1)
    )


@given(_sentences)
def test_every_answer_fits_every_contract(parts: list[tuple[str, int]]) -> None:
    reply = _answer(parts, str)
    assert len(plain.show(reply).sources) <= 5
    answer = envelope.show(reply).answer
    assert answer is not None
    assert len(answer.text) <= 2000
    assert query_documents.show(reply).sources


@pytest.mark.parametrize("error", [Forbidden("no"), WrongHost("no"), StoreFailed("away")])
def test_every_error_has_a_code_in_chat(error: BookError) -> None:
    codes = {403: "FORBIDDEN", 421: "INVALID_REQUEST", 503: "SERVICE_UNAVAILABLE"}
    status, body = answers.fail(error)
    assert body.error_code == codes[status]
