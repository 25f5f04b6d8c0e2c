"""What the data models compute on the way from a question to a reply, on a small open book."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bythebook.book import Book
from bythebook.contracts import ask, chat, envelope, plain, query
from bythebook.errors import InvalidInput, NotFound
from bythebook.language.tokens import estimate_tokens
from bythebook.refusals import BOOK_DOES_NOT_SAY
from bythebook.server import examples
from bythebook.testing import PAGES, FakeEmbedder, fake_book
from tests.server.conftest import FragileEmbedder

QUESTION = "At how many degrees does a kettle boil water?"
UNKNOWN = "Who won the chess championship in 1972?"
SELECTION = "A kettle boils water at 100 degrees Celsius."


@pytest.fixture
def embedder() -> FragileEmbedder:
    return FragileEmbedder()


@pytest.fixture
async def book(embedder: FragileEmbedder) -> AsyncIterator[Book]:
    async with await fake_book(embedder=embedder) as book:
        yield book


async def test_the_vector_of_a_question_is_that_of_the_embedder(book: Book) -> None:
    vector = FakeEmbedder().vector(QUESTION).tolist()
    embedding, of_envelope = await query.embed(book, QUESTION), await envelope.embed(book, QUESTION)
    assert (embedding.model, embedding.dimension) == ("bag", 64)
    assert np.allclose(embedding.vector, vector)
    assert of_envelope.vector == embedding.vector
    assert of_envelope.input_type == "search_query"


async def test_a_context_holds_the_relevant_chunks_within_its_tokens(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = await query.retrieve(book, query.Query(text=QUESTION))
    assert context.chunks
    assert all(chunk.text in context.formatted_text for chunk in context.chunks)
    assert context.total_tokens == estimate_tokens(context.formatted_text)
    response = query.show(await book.reply(query.read(query.Query(text=QUESTION))))
    places = {(chunk.section, chunk.module or "") for chunk in context.chunks}
    assert {(source.section, source.module) for source in response.sources} <= places
    monkeypatch.setattr(query, "MAX_CONTEXT_TOKENS", 3)
    cut = await query.retrieve(book, query.Query(text=QUESTION))
    assert (cut.chunks, cut.formatted_text) == ([], "")


async def _states(events: AsyncIterator[Any]) -> tuple[list[str], Any]:
    *states, result = [event async for event in events]
    return [str(state) for state in states if isinstance(state, str)], result


async def test_the_states_of_a_query_are_told_by_name(
    book: Book, embedder: FragileEmbedder
) -> None:
    searched = ["Received", "Embedding", "Searching"]
    events = [event async for event in query.follow(book, query.Query(text=QUESTION))]
    assert isinstance(events.pop(), query.Response)
    assert events == [*searched, "Retrieved", "Responding", "Complete"]
    events = [event async for event in query.follow(book, query.Query(text=UNKNOWN))]
    response = events.pop()
    assert isinstance(response, query.Response) and response.is_refusal
    assert events == [*searched, "NoResults", "Refusal", "Complete"]
    embedder.broken = True
    states, error = await _states(query.follow(book, query.Query(text="What is it?")))
    assert states == ["Received", "Embedding", "Searching", "EmbeddingFailed"]
    assert error.error_type == "EmbeddingFailed"


def test_a_context_that_is_too_large_is_told() -> None:
    hit = examples.EVIDENCE.hits[0]
    other = replace(hit, passage=replace(hit.passage, id="f" * 64), score=0.8)
    cut = replace(examples.EVIDENCE, considered=(hit, other))
    assert query._is_cut(cut)
    assert not query._is_cut(examples.EVIDENCE)


async def test_an_agent_query_ends_in_a_response_or_an_error(
    book: Book, embedder: FragileEmbedder
) -> None:
    states, response = await _states(ask.follow(book, ask.AgentQuery(text=QUESTION)))
    assert states == ["RECEIVED", "VALIDATING", "RETRIEVING", "GENERATING", "COMPLETE"]
    assert isinstance(response, ask.AgentResponse) and "100 degrees" in response.answer
    refused = await ask.answer(book, ask.AgentQuery(text=UNKNOWN))
    assert isinstance(refused, ask.AgentResponse) and not refused.has_relevant_context
    embedder.broken = True
    states, error = await _states(ask.follow(book, ask.AgentQuery(text="What is it?")))
    assert states == ["RECEIVED", "VALIDATING", "RETRIEVING", "ERROR"]
    assert isinstance(error, ask.AgentError) and error.error_type == "retrieval"


async def test_results_are_formatted_as_numbered_passages(book: Book) -> None:
    results = await ask.semantic_search(book, QUESTION, 2)
    assert 1 <= results.total_count <= 2
    [first, *_] = results.results
    assert ask.format_context(results).startswith(f"[1] {first.page_title} › ")
    assert first.content in ask.format_context(results)
    assert ask.format_context(results, tokens=1) == ""


async def test_an_envelope_passes_through_the_entities_of_its_data_flow(
    book: Book, embedder: FragileEmbedder
) -> None:
    events = [each async for each in envelope.follow(book, envelope.QueryRequest(query=QUESTION))]
    workflow, chunks, answer, response = events
    assert isinstance(workflow, envelope.PlannedWorkflow) and workflow.mode == "standard_rag"
    assert isinstance(response, envelope.QueryResponse) and response.answer == answer
    found = await envelope.retrieve(book, workflow)
    assert isinstance(chunks, list) and {chunk.chunk_id for chunk in found}
    scores = [chunk.similarity_score for chunk in found]
    assert scores == sorted(scores, reverse=True)
    refused = await envelope.answer(book, envelope.QueryRequest(query=UNKNOWN))
    assert refused.refusal and refused.refusal.refusal_type == "low_relevance"
    embedder.broken = True
    failed = await envelope.answer(book, envelope.QueryRequest(query="What is it?"))
    assert failed.error and failed.error.code == "COHERE_FAILURE"


async def test_a_selected_text_is_the_only_chunk(book: Book) -> None:
    request = envelope.QueryRequest(query=QUESTION, selected_text=SELECTION)
    workflow = envelope.plan(request)
    assert (workflow.mode, workflow.selected_text) == ("selected_text_only", SELECTION)
    [chunk] = await envelope.retrieve(book, workflow)
    assert (chunk.chunk_id, chunk.similarity_score) == ("selected_text", 1.0)
    assert (chunk.chapter, chunk.section, chunk.source_url) == (None, None, None)
    response = await envelope.answer(book, request)
    assert response.answer and response.answer.mode == "selected_text_only"


async def test_plain_finds_ranked_chunks_with_their_vectors(book: Book) -> None:
    results = await plain.search(book, plain.Query(query_text=QUESTION))
    assert [result.rank for result in results] == list(range(1, len(results) + 1))
    chunk = results[0].chunk
    assert (chunk.filename, chunk.model, len(chunk.embedding)) == ("intro.md", "bag", 64)
    assert plain.Chunk.model_validate_json(chunk.model_dump_json()) == chunk
    answer = await plain.answer(book, plain.Query(query_text=QUESTION))
    assert (answer.model_used, len(answer.sources)) == ("extractive", 1)
    refused = await plain.answer(book, plain.QueryRequest(query=UNKNOWN))
    assert (refused.answer, refused.sources) == (BOOK_DOES_NOT_SAY, [])


async def test_a_search_of_the_textbook_lists_each_text_once() -> None:
    page = PAGES["intro.md"].partition("## Kettles")[2]
    pages = {f"{n}.md": f"# Kettles\n{page}" for n in range(3)} | {"tea.md": "# Tea\n\nGreen tea."}
    async with await fake_book(pages) as book:
        found = await chat.search_textbook(book, QUESTION, similarity_threshold=0.0)
        assert len(set(found.chunks)) == len(found.chunks) == len(found.scores)
        assert (found.model, len(found.query_embedding)) == ("bag", 64)
        assert found.scores == sorted(found.scores, reverse=True)
        measured = chat.confidence(found)
        assert measured.num_chunks == len(found.chunks)
        assert measured.average_similarity == pytest.approx(found.average_score)
        assert 0 < measured.chunk_diversity <= 1
        found._vectors = found._vectors[:1] * 2
        assert chat.confidence(found).chunk_diversity == pytest.approx(0, abs=1e-6)
        none = await chat.search_textbook(book, QUESTION, similarity_threshold=1.0)
        assert (none.chunks, none.has_sufficient_context) == ([], False)
        assert not chat.confidence(none).should_answer


@pytest.mark.parametrize(
    ("scores", "level"),
    [
        ([0.85] * 5, "high"),
        ([0.84] * 5, "medium"),
        ([0.75] * 3, "medium"),
        ([0.74] * 3, "low"),
        ([0.6] * 2, "low"),
        ([0.59] * 5, "insufficient"),
        ([0.6], "insufficient"),
        ([0.9, 0.1, 0.1], "medium"),  # one decisive chunk
        ([], "insufficient"),
    ],
)
def test_the_level_follows_the_scores(scores: list[float], level: str) -> None:
    place = {"chapter": "", "section": "", "url": "", "chunk_index": 0, "content_hash": ""}
    average = sum(scores) / len(scores) if scores else 0.0
    result = chat.RetrievalResult.model_validate(
        {
            "chunks": ["text"] * len(scores),
            "scores": scores,
            "metadata": [place] * len(scores),
            "average_score": average,
            "has_sufficient_context": average >= 0.75 and len(scores) >= 3,
            "query_embedding": [0.1] * 1536,
        }
    )
    metrics = chat.confidence(result)
    assert metrics.confidence_level == level
    assert metrics.should_answer == (level != "insufficient")


async def test_a_thread_keeps_its_messages_and_metadata_until_it_is_deleted(book: Book) -> None:
    first = chat.ChatRequest(message=QUESTION, metadata={"user_id": "u1", "tags": ["ros2"]})
    session = str((await chat.answer(book, first)).session_id)
    again = {"message": "Why?", "session_id": session, "metadata": {"tags": ["urdf"]}}
    await chat.answer(book, chat.ChatRequest.model_validate(again))
    thread = await chat.thread(book, session)
    assert thread.metadata == {"user_id": "u1", "tags": ["urdf"]}
    assert [message.role for message in thread.messages] == ["user", "assistant"] * 2
    full = again | {"metadata": {"note": "x" * 4080}}
    with pytest.raises(InvalidInput, match="at most 4096 bytes"):
        await chat.answer(book, chat.ChatRequest.model_validate(full))
    assert await book.threads.delete(session, owner=None)
    with pytest.raises(NotFound):
        await chat.thread(book, session)
