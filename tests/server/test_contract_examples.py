"""Examples of the contracts' data models are accepted or rejected as documented."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from bythebook.documents import query as query_documents
from bythebook.server.contracts import ask as ask_contract
from bythebook.server.contracts import envelope, plain
from bythebook.server.contracts.chat import answers as chat
from bythebook.server.contracts.chat import stream, threads

_SESSION = "550e8400-e29b-41d4-a716-446655440000"
_REFUSAL = (
    "The provided book content does not contain sufficient information to answer this question"
)
_METADATA = {
    "chunks_retrieved": 5,
    "processing_time_ms": 812,
    "session_id": None,
    "request_id": _SESSION,
}
_CHAT_RESPONSE: dict[str, Any] = {
    "response": "ROS 2 nodes communicate through a publish-subscribe mechanism using topics. Nodes "
    "can publish messages to topics and subscribe to receive messages from topics they're "
    "interested in.",
    "confidence": 0.87,
    "sources": [
        {
            "chunk_text": "ROS 2 nodes use a distributed publish-subscribe architecture...",
            "similarity_score": 0.92,
            "chapter": "Chapter 3: Robot Operating System 2",
            "section": "3.2 ROS 2 Communication Patterns",
            "url": "https://example.com/textbook/chapter3#section3-2",
            "chunk_index": 15,
        }
    ],
    "session_id": _SESSION,
    "timestamp": "2025-12-17T14:23:45.123Z",
    "confidence_level": "high",
    "should_answer": True,
}
_THREAD: dict[str, Any] = {
    "thread_id": _SESSION,
    "messages": [
        {"role": "user", "content": "What is URDF?", "timestamp": "2025-12-17T14:20:00.000Z"},
        {
            "role": "assistant",
            "content": "URDF (Unified Robot Description Format) is an XML format for representing "
            "robot models...",
            "timestamp": "2025-12-17T14:20:02.150Z",
            "confidence": 0.91,
        },
        {
            "role": "user",
            "content": "Can you give an example?",
            "timestamp": "2025-12-17T14:21:00.000Z",
        },
    ],
    "created_at": "2025-12-17T14:20:00.000Z",
    "updated_at": "2025-12-17T14:21:00.000Z",
    "topic_summary": "Discussion about URDF robot description format and examples",
    "metadata": {"user_id": "user123", "tags": ["ros2", "urdf", "robotics"]},
}
_CONFIDENCE: dict[str, Any] = {
    "average_similarity": 0.87,
    "min_similarity": 0.78,
    "max_similarity": 0.94,
    "num_chunks": 5,
    "chunk_diversity": 0.23,
    "confidence_level": "high",
    "should_answer": True,
}


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (chat.ChatResponse, _CHAT_RESPONSE),
        (threads.ChatConversationThread, _THREAD),
        (stream.ChatConfidenceMetrics, _CONFIDENCE),
        (
            envelope.EnvelopeRefusalMessage,
            {"refusal_type": "empty_retrieval", "reason": _REFUSAL, "nearby": []},
        ),
        (
            envelope.EnvelopeGroundedAnswer,
            {
                "text": "ROS 2 is the nervous system of modern robots, connecting sensors, "
                "actuators, and AI into a unified organism...",
                "citations": [
                    {
                        "chapter": "Chapter 2: ROS 2 Fundamentals",
                        "section": "Learning Objectives",
                        "source_url": "https://example.com/docs/02-ros2-fundamentals",
                        "referenced_text": "ROS 2 is the nervous system of modern robots",
                    }
                ],
                "mode": "standard_rag",
            },
        ),
        (
            envelope.EnvelopeErrorDetail,
            {
                "code": "QDRANT_TIMEOUT",
                "message": "The search service is temporarily unavailable. Please try again.",
                "details": "Qdrant connection timeout after 5s",
                "retry_after": None,
            },
        ),
        (
            query_documents.QuerySource,
            {
                "chapter": "01-ros2-fundamentals",
                "section": "Creating a Publisher Node",
                "module": "Module 1",
            },
        ),
    ],
)
def test_documented_response_survives_a_round_trip(
    model: type[BaseModel], example: dict[str, Any]
) -> None:
    assert model.model_validate(example).model_dump(mode="json") == example


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (query_documents.Query, {"text": "kinematics"}),
        (query_documents.Query, {"text": "What is URDF?", "timestamp": "2025-12-15T10:00:00Z"}),
        (
            ask_contract.AgentQuery,
            {"text": "What is ROS 2?", "top_k": 20, "relevance_threshold": 1.0},
        ),
        (envelope.EnvelopeQueryRequest, {"query": "How does ROS 2 work?", "selected_text": None}),
        (
            envelope.EnvelopeQueryRequest,
            {
                "query": "What are topics?",
                "selected_text": "Nodes in ROS 2 communicate via topics",
                "top_k": 10,
                "session_id": _SESSION,
            },
        ),
        (plain.PlainQueryRequest, {"query": "word " * 500, "selected_text": "word " * 200}),
        (
            chat.ChatRequest,
            {
                "message": "How do ROS 2 nodes communicate?",
                "session_id": _SESSION,
                "stream": False,
                "top_k": 5,
                "similarity_threshold": 0.7,
            },
        ),
    ],
)
def test_documented_request_is_accepted(model: type[BaseModel], body: object) -> None:
    read = model.model_validate(body)
    assert isinstance(body, dict)
    assert set(body) <= read.model_fields_set  # nothing that is sent is passed over in silence


@pytest.mark.parametrize(
    ("model", "body", "said"),
    [
        (
            query_documents.QueryResponse,
            {"answer": "no", "sources": [], "is_refusal": True},
            "refusal_reason",
        ),
        (envelope.EnvelopeQueryRequest, {"query": "  "}, "Query cannot be empty"),
        (
            envelope.EnvelopeCitation,
            {"referenced_text": "words"},
            "Citation must have at least one of: chapter, section, source_url",
        ),
        (
            envelope.EnvelopeRefusalMessage,
            {"refusal_type": "selected_text_missing", "reason": _REFUSAL},
            'must be: "The selected text does not contain this information"',
        ),
        (
            envelope.EnvelopeGroundedAnswer,
            {"text": "t", "citations": [], "mode": "standard_rag"},
            "item",
        ),
        (
            envelope.EnvelopeQueryResponse,
            {"status": "success", "metadata": _METADATA},
            "answer required when status=success",
        ),
        (
            envelope.EnvelopeQueryResponse,
            {
                "status": "refused",
                "refusal": {"refusal_type": "low_relevance", "reason": _REFUSAL},
                "error": {"code": "QDRANT_TIMEOUT", "message": "m"},
                "metadata": _METADATA,
            },
            "Exactly one of answer, refusal, error must be present",
        ),
        (plain.PlainQueryRequest, {"query": "word " * 501}, r"Query exceeds 500 words \(has 501\)"),
        (
            plain.PlainQueryRequest,
            {"query": "q", "selected_text": "word " * 201},
            r"Selected text exceeds 200 words \(has 201\)",
        ),
        (chat.ChatResponse, _CHAT_RESPONSE | {"sources": []}, "sources must be non-empty"),
        (chat.ChatResponse, _CHAT_RESPONSE | {"should_answer": False}, "match confidence_level"),
        (
            threads.ChatConversationThread,
            _THREAD | {"messages": _THREAD["messages"][:1] * 2},
            "must alternate",
        ),
        (
            threads.ChatConversationThread,
            _THREAD | {"messages": _THREAD["messages"][1::-1]},
            "chronological order",
        ),
        (
            threads.ChatConversationThread,
            _THREAD | {"created_at": "2025-12-17T14:20:00"},
            "timezone",
        ),
        (threads.ChatConversationThread, _THREAD | {"topic_summary": "x" * 201}, "200 characters"),
        (stream.ChatConfidenceMetrics, _CONFIDENCE | {"min_similarity": 0.9}, "min_similarity"),
        (stream.ChatConfidenceMetrics, _CONFIDENCE | {"should_answer": False}, "confidence_level"),
    ],
)
def test_documented_rule_is_enforced(model: type[BaseModel], body: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        model.model_validate(body)
