"""Every entity, limit and rule of the five data models: what they say is in these tables."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from tools import data_models
from tools.make_docs import DOCS

from bythebook.contracts import ask, chat, envelope, plain, query
from bythebook.refusals import BOOK_DOES_NOT_SAY, SELECTION_DOES_NOT_SAY
from bythebook.validation import message_of


def _data(file: str) -> Any:
    """Read a table; ``{"times": 3, "of": …}`` in it stands for a text or list three times."""
    text = Path(__file__).with_name(file).read_text("utf-8")
    return json.loads(text, object_hook=lambda o: o["of"] * o["times"] if "times" in o else o)


# A valid value of every entity; those of chat are the JSON examples of its data model.
EXAMPLES: dict[str, dict[str, Any]] = _data("examples.json")
ENTITIES = {
    query: "Query Embedding RetrievedChunk Context Response Source",
    ask: "SearchResult ResultSet AgentQuery SourceCitation AgentResponse AgentError",
    envelope: "QueryRequest PlannedWorkflow QueryEmbedding RetrievedChunk Citation GroundedAnswer "
    "RefusalMessage QueryResponse ErrorDetail ResponseMetadata",
    plain: "Chunk Query SearchResult AgentResponse Source QueryRequest QueryResponse IngestResult",
    chat: "ChatRequest ChatResponse ConversationThread RetrievalResult ConfidenceMetrics Source "
    "Message ChunkMetadata",
}
CONSTANTS = {
    query: {
        "TOP_K": 5,
        "SIMILARITY_THRESHOLD": 0.75,
        "MAX_CONTEXT_TOKENS": 4000,
        "MAX_QUERY_LENGTH": 2000,
    },
    ask: {
        "DEFAULT_TOP_K": 5,
        "DEFAULT_RELEVANCE_THRESHOLD": 0.5,
        "MAX_TOP_K": 20,
        "MAX_QUERY_LENGTH": 2000,
        "COLLECTION_NAME": "physical-ai-textbook",
    },
    envelope: {
        "REFUSAL_MESSAGES": {
            "empty_retrieval": BOOK_DOES_NOT_SAY,
            "low_relevance": BOOK_DOES_NOT_SAY,
            "insufficient_grounding": BOOK_DOES_NOT_SAY,
            "selected_text_missing": SELECTION_DOES_NOT_SAY,
        }
    },
}
ENUMS: dict[Any, str] = {
    ask.AgentState: "RECEIVED VALIDATING RETRIEVING GENERATING COMPLETE ERROR",
    ask.AgentErrorType: "validation retrieval generation no_context",
    envelope.WorkflowMode: "standard_rag selected_text_only",
    envelope.RefusalType: "empty_retrieval low_relevance insufficient_grounding "
    "selected_text_missing",
    envelope.ResponseStatus: "success refused error",
    envelope.ErrorCode: "QDRANT_TIMEOUT COHERE_FAILURE OPENROUTER_TIMEOUT VALIDATION_FAILED "
    "RATE_LIMIT_EXCEEDED",
    chat.Level: "high medium low insufficient",
    chat.Role: "user assistant",
    # Without the names of failures that the data model does not know:
    query.ProcessingState: "Received Embedding Searching Retrieved NoResults ContextTooLarge "
    "Responding Refusal Complete EmbeddingFailed SearchFailed RespondingFailed",
}
_Limits = tuple[int, int | None]
_SHARE, _FROM_ZERO, _FROM_ONE = (0, 1), (0, None), (1, None)


def _table(fields: dict[_Limits, str]) -> dict[str, _Limits]:
    return {field: limits for limits, names in fields.items() for field in names.split()}


# Least and greatest length of texts and lists, and of values: None is no limit.
LENGTHS = _table(
    {
        (1, 2000): "query.Query.text ask.AgentQuery.text envelope.GroundedAnswer.text",
        _FROM_ONE: "query.Embedding.vector query.Embedding.model query.RetrievedChunk.id "
        "query.RetrievedChunk.text query.Response.answer ask.SearchResult.content "
        "ask.SearchResult.chunk_id ask.AgentResponse.answer envelope.QueryEmbedding.vector "
        "envelope.RetrievedChunk.chunk_id envelope.GroundedAnswer.citations "
        "plain.Chunk.embedding plain.Chunk.chapter plain.Chunk.section plain.Chunk.filename "
        "plain.Query.query_text plain.Source.chapter plain.Source.section "
        "plain.Source.filename plain.QueryResponse.answer plain.AgentResponse.answer "
        "plain.AgentResponse.model_used plain.QueryRequest.query chat.ChatResponse.response "
        "chat.RetrievalResult.query_embedding",
        (0, 5): "query.Context.chunks plain.QueryResponse.sources plain.AgentResponse.sources",
        (1, 500): "envelope.QueryRequest.query",
        (10, 5000): "envelope.QueryRequest.selected_text",
        (1, 10000): "envelope.RetrievedChunk.text plain.Chunk.text",
        (0, 500): "envelope.Citation.referenced_text envelope.ErrorDetail.details "
        "chat.Source.chunk_text",
        (1, 200): "envelope.ErrorDetail.message",
        (64, 64): "plain.Chunk.id plain.Chunk.content_hash",
        (1, 1000): "chat.ChatRequest.message",
        (0, 50): "chat.ConversationThread.messages",
        (0, 200): "chat.ConversationThread.topic_summary",
        (0, 10): "chat.RetrievalResult.chunks",
    }
)
VALUES = _table(
    {
        _FROM_ONE: "query.Embedding.dimension ask.NumberedCitation.number "
        "ask.NumberedCitation.source",
        _SHARE: "query.RetrievedChunk.score ask.AgentQuery.relevance_threshold "
        "ask.SearchResult.score "
        "ask.SourceCitation.relevance_score ask.NumberedCitation.score "
        "envelope.RetrievedChunk.similarity_score plain.SearchResult.score plain.Source.score "
        "chat.ChatRequest.similarity_threshold chat.Source.similarity_score "
        "chat.ChatResponse.confidence chat.Message.confidence "
        "chat.RetrievalResult.average_score chat.RetrievalResult.scores[] "
        "chat.ConfidenceMetrics.average_similarity chat.ConfidenceMetrics.min_similarity "
        "chat.ConfidenceMetrics.max_similarity chat.ConfidenceMetrics.chunk_diversity",
        (0, 4000): "query.Context.total_tokens",
        (1, 20): "ask.AgentQuery.top_k envelope.QueryRequest.top_k",
        _FROM_ZERO: "ask.ResultSet.query_time_ms ask.ResultSet.search_time_ms "
        "ask.ResultSet.total_time_ms "
        "ask.AgentResponse.retrieval_time_ms ask.AgentResponse.generation_time_ms "
        "ask.AgentResponse.total_time_ms envelope.ErrorDetail.retry_after "
        "envelope.ResponseMetadata.chunks_retrieved "
        "envelope.ResponseMetadata.processing_time_ms plain.Chunk.chunk_index "
        "plain.AgentResponse.latency plain.IngestResult.files_processed "
        "plain.IngestResult.chunks_created chat.Source.chunk_index "
        "chat.ChunkMetadata.chunk_index chat.ConfidenceMetrics.num_chunks",
        (1, 5): "plain.SearchResult.rank",
        (1, 10): "chat.ChatRequest.top_k",
    }
)
LIMITS = {**LENGTHS, **VALUES}
# The rules of these entities bind their values to each other:
_BOUND = {"chat.ConfidenceMetrics", "chat.RetrievalResult", "query.Context", "plain.IngestResult"}
_URLS = {"envelope.RetrievedChunk.source_url", "envelope.Citation.source_url"}  # of HttpUrl itself


def _entity(name: str) -> type[BaseModel]:
    contract, entity = name.split(".")[:2]
    found: type[BaseModel] = getattr(data_models.MODULES[contract], entity)
    return found


def _accepts(name: str, **changes: Any) -> bool:
    try:
        _entity(name).model_validate(EXAMPLES[name] | changes)
    except ValidationError:
        return False
    return True


def _refusal(name: str, **changes: Any) -> tuple[str, str]:
    """The message and the field of a refused value, as over HTTP."""
    sent = EXAMPLES[name] | changes
    with pytest.raises(ValidationError) as raised:
        _entity(name).model_validate(sent)
    errors = [{**error, "loc": ("body", *error["loc"])} for error in raised.value.errors()]
    return message_of(errors, sent)


def test_every_entity_constant_and_enumeration_has_its_name() -> None:
    for module, names in ENTITIES.items():
        for name in names.split():
            assert issubclass(getattr(module, name), BaseModel)
    of_seeds = {
        f"{contract}.{name}"
        for contract, module in data_models.MODULES.items()
        for name in ENTITIES[module].split()
    }
    found = {f"{contract}.{entity.__name__}" for contract, entity in data_models.entities()}
    assert {name for name in found if name.split(".")[1] not in data_models.OURS} == of_seeds
    for module, values in CONSTANTS.items():
        assert {name: getattr(module, name) for name in values} == values
    for enum, values in ENUMS.items():
        assert [member.value for member in enum] == values.split()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_survives_a_round_trip(name: str) -> None:
    parsed = _entity(name).model_validate(EXAMPLES[name])
    assert parsed.model_dump(mode="json", exclude_unset=True) == EXAMPLES[name]
    text = parsed.model_dump_json(exclude_unset=True)
    assert _entity(name).model_validate_json(text) == parsed


def test_every_entity_has_an_example_and_every_limit_is_in_the_tables() -> None:
    named = {f"{contract}.{entity.__name__}" for contract, entity in data_models.entities()}
    assert named - set(EXAMPLES) <= {"ask.CitedSentence", "ask.MarkedSpan"}
    stated = {".".join(path): limits for path, limits in data_models.limits().items()}
    assert set(stated) - _URLS == set(LIMITS)
    for name, (least, greatest) in LIMITS.items():
        ends = {int(value) for value in stated[name].values()} - {0}
        assert ends == {end for end in (least, greatest) if end}, name


@given(st.sampled_from(sorted(LIMITS)), st.data())
def test_a_value_outside_of_its_limits_is_refused(path: str, data: st.DataObject) -> None:
    name, _, field = path.removesuffix("[]").rpartition(".")
    least, greatest = LIMITS[path]
    below = (
        [st.integers(0 if path in LENGTHS else -3, least - 1)] if least or path in VALUES else []
    )
    above = [] if greatest is None else [st.integers(greatest + 1, greatest + 50)]
    if not below + above:
        return
    size = data.draw(st.one_of(below + above))
    value: Any = size
    if path in LENGTHS:
        old = EXAMPLES[name].get(field)
        value = (old * size)[:size] if isinstance(old, list) and old else "x" * size
    value = [value] if path.endswith("[]") else value
    message, refused = _refusal(name, **{field: value})
    limit = least if size < least else greatest
    assert refused.startswith(field)
    assert str(limit) in message or "empty" in message


@given(st.sampled_from(sorted(LENGTHS)), st.data())
def test_a_text_within_its_limits_is_accepted(path: str, data: st.DataObject) -> None:
    name, _, field = path.rpartition(".")
    least, greatest = LENGTHS[path]
    if isinstance(EXAMPLES[name].get(field), list):
        return  # the rules of the entity bind lists to other fields
    size = data.draw(
        st.sampled_from([least, greatest or 20_000]) | st.integers(least, greatest or 99)
    )
    assert _accepts(name, **{field: "x" * size})


@given(st.sampled_from(sorted(set(VALUES) - {"query.Embedding.dimension"})), st.data())
def test_a_value_within_its_limits_is_accepted(path: str, data: st.DataObject) -> None:
    name, _, field = path.rpartition(".")
    if name in _BOUND:
        return
    least, greatest = VALUES[path]
    value = data.draw(st.sampled_from([least, greatest or 10**6]) | st.integers(least, greatest))
    assert _accepts(name, **{field: value})
    if _entity(name).model_fields[field].annotation is float:
        assert _accepts(name, **{field: data.draw(st.floats(least, greatest or 1e9))})


def test_what_a_data_model_generates_by_itself_may_be_left_out() -> None:
    thread = chat.ConversationThread()
    assert (thread.thread_id.version, thread.messages, thread.metadata) == (4, [], {})
    assert thread.created_at <= thread.updated_at
    moved = chat.ConversationThread.model_validate({"created_at": "2025-12-17T19:20:00+05:00"})
    assert moved.created_at.isoformat() == "2025-12-17T14:20:00+00:00"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("envelope.QueryEmbedding", "model"),
        ("envelope.QueryEmbedding", "input_type"),
        ("plain.IngestResult", "exit_code"),
    ],
)
def test_a_required_field_is_not_made_up(name: str, field: str) -> None:
    sent = {key: value for key, value in EXAMPLES[name].items() if key != field}
    with pytest.raises(ValidationError, match=field):
        _entity(name).model_validate(sent)


Changes = dict[str, Any]
# Of every rule: a change of the entity's example that is accepted, and one that is refused.
RULES: dict[tuple[str, str], tuple[Changes, Changes]] = {
    (name, rule): (accepted, refused) for name, rule, accepted, refused in _data("rules.json")
}


def test_every_rule_is_in_the_table() -> None:
    stated = {(f"{contract}.{entity}", text) for contract, entity, text in data_models.rules()}
    assert stated <= set(RULES)


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_a_rule_accepts_and_refuses(name: str, rule: str) -> None:
    accepted, refused = RULES[name, rule]
    assert _accepts(name, **accepted)
    message, _ = _refusal(name, **refused)
    assert message.endswith(".")


@pytest.mark.parametrize("contract", data_models.MODULES)
def test_a_value_that_an_enumeration_lacks_is_refused(contract: str) -> None:
    for name in (name for name in EXAMPLES if name.startswith(f"{contract}.")):
        for field, schema in _entity(name).model_json_schema()["properties"].items():
            if "enum" in schema or "$ref" in schema:
                message, refused = _refusal(name, **{field: "nonsense"})
                assert "nonsense" in message
                assert refused == field


def test_the_page_lists_every_entity_and_its_example_runs() -> None:
    page = (DOCS / "data-models.md").read_text("utf-8")
    for contract, entity in data_models.entities():
        assert f"### {contract}.{entity.__name__}\n" in page
    for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
