"""A valid value of every entity; those of chat are the JSON examples of its data model."""

from __future__ import annotations

from typing import Any

from bythebook.refusals import BOOK_DOES_NOT_SAY

SESSION = "550e8400-e29b-41d4-a716-446655440000"
NOON = "2025-12-17T12:00:00.000Z"
HASH = "0123456789abcdef" * 4
URL = "https://example.com/docs/02-ros2-fundamentals"
_PLACE = {"chapter": "Chapter 2: ROS 2 Fundamentals", "section": "Learning Objectives"}

_CHUNK = {
    "id": HASH,
    "embedding": [0.1] * 768,
    "text": "ROS 2 is the nervous system of modern robots.",
    "chapter": "Chapter 1: Embodied Intelligence",
    "section": "01-digital-vs-physical-ai",
    "filename": "01-digital-vs-physical-ai.mdx",
    "chunk_index": 0,
    "content_hash": HASH,
}
_PLAIN_SOURCE = {
    "chapter": "Chapter 1",
    "section": "01-digital-vs-physical-ai",
    "filename": "01-digital-vs-physical-ai.mdx",
    "score": 0.9,
}
_FOUND = {"id": SESSION, "text": "A publisher node …", "score": 0.9, "keywords": ["ros2"]}
_QUERY_SOURCE = {
    "chapter": "01-ros2-fundamentals",
    "section": "Creating a Publisher Node",
    "module": "Module 1",
}
_RESULT = {
    "score": 0.9,
    "content": "Topics are named channels.",
    "source_url": URL,
    "section_title": "Topics",
    "chunk_id": "abc123",
    "chapter": "module-1-ros2",
    "page_title": "ROS 2",
    "position": 0,
    "content_hash": "5d41402abc4b2a76b9719d911017c592",
}
_CITED = {"chapter": "module-1-ros2", "section": "Topics", "url": URL, "relevance_score": 0.9}
_CITATION = _PLACE | {
    "source_url": URL,
    "referenced_text": "ROS 2 is the nervous system of modern robots",
}
_ANSWER = {
    "text": "ROS 2 is the nervous system of modern robots, connecting sensors, actuators, and AI "
    "into a unified organism...",
    "citations": [_CITATION],
    "mode": "standard_rag",
}
_METADATA = {
    "chunks_retrieved": 5,
    "processing_time_ms": 812,
    "session_id": None,
    "request_id": SESSION,
}
_CHAT_PLACE = {
    "chapter": "Chapter 3: Robot Operating System 2",
    "section": "3.2 ROS 2 Communication Patterns",
    "url": "https://example.com/textbook/chapter3#section3-2",
}
_CHAT_SOURCE = {
    "chunk_text": "ROS 2 nodes use a distributed publish-subscribe architecture...",
    "similarity_score": 0.92,
    **_CHAT_PLACE,
    "chunk_index": 15,
}
_MESSAGES = [
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
]
_CHUNKS = [
    _CHAT_PLACE | {"chunk_index": 15, "content_hash": "a1b2c3d4e5f6..."},
    _CHAT_PLACE | {"chunk_index": 16, "content_hash": "f6e5d4c3b2a1..."},
]

EXAMPLES: dict[str, dict[str, Any]] = {
    "query.Query": {"text": "What is URDF?", "timestamp": NOON},
    "query.Embedding": {
        "vector": [0.1] * 1024,
        "model": "embed-english-v3.0",
        "dimension": 1024,
    },
    "query.RetrievedChunk": _FOUND,
    "query.Context": {"chunks": [_FOUND], "total_tokens": 12, "formatted_text": "[1] …"},
    "query.Response": {"answer": "By topics.", "sources": [_QUERY_SOURCE], "is_refusal": False},
    "query.Source": _QUERY_SOURCE,
    "query.QueryError": {
        "message": "The search service is unavailable.",
        "error_type": "SearchFailed",
        "recoverable": True,
    },
    "ask.SearchResult": _RESULT,
    "ask.ResultSet": {
        "query": "What is a topic?",
        "results": [_RESULT],
        "total_count": 1,
        "query_time_ms": 3.2,
        "search_time_ms": 1.9,
        "total_time_ms": 5.1,
    },
    "ask.AgentQuery": {"text": "What is ROS 2?", "top_k": 5, "relevance_threshold": 0.5},
    "ask.SourceCitation": _CITED,
    "ask.AgentResponse": {
        "answer": "A topic is a named channel. [1]",
        "sources": [_CITED],
        "has_relevant_context": True,
        "retrieval_time_ms": 5.1,
        "generation_time_ms": 4.4,
        "total_time_ms": 9.7,
    },
    "ask.AgentError": {"error_type": "retrieval", "message": "Try again.", "details": None},
    "ask.NumberedCitation": {
        "number": 1,
        "source": 1,
        "quote": "A topic is a named channel.",
        "url": URL,
        "link": URL,
        "filename": "topics.md",
        "section": "Topics",
        "score": 0.9,
    },
    "envelope.QueryRequest": {
        "query": "How does ROS 2 work?",
        "selected_text": "Nodes in ROS 2 communicate via topics",
        "top_k": 10,
        "session_id": SESSION,
    },
    "envelope.PlannedWorkflow": {
        "mode": "standard_rag",
        "query": "How does ROS 2 work?",
        "top_k": 5,
        "selected_text": None,
    },
    "envelope.QueryEmbedding": {
        "vector": [0.123, -0.456] * 512,
        "model": "embed-multilingual-v3.0",
        "input_type": "search_query",
    },
    "envelope.RetrievedChunk": {
        "chunk_id": "abc123",
        "text": "ROS 2 is the nervous system of modern robots...",
        **_PLACE,
        "source_url": URL,
        "similarity_score": 0.672,
    },
    "envelope.Citation": _CITATION,
    "envelope.GroundedAnswer": _ANSWER,
    "envelope.RefusalMessage": {"refusal_type": "low_relevance", "reason": BOOK_DOES_NOT_SAY},
    "envelope.ErrorDetail": {
        "code": "QDRANT_TIMEOUT",
        "message": "The search service is temporarily unavailable. Please try again.",
        "details": "Qdrant connection timeout after 5s",
        "retry_after": None,
    },
    "envelope.ResponseMetadata": _METADATA,
    "envelope.QueryResponse": {
        "status": "success",
        "answer": _ANSWER,
        "refusal": None,
        "error": None,
        "metadata": _METADATA,
    },
    "plain.Chunk": _CHUNK,
    "plain.Query": {"query_text": "What is ROS 2?", "selected_text": None, "timestamp": NOON},
    "plain.SearchResult": {"chunk": _CHUNK, "score": 0.9, "rank": 1},
    "plain.Source": _PLAIN_SOURCE,
    "plain.QueryRequest": {"query": "What is ROS 2?", "selected_text": "Nodes communicate."},
    "plain.QueryResponse": {"answer": "Middleware. [1]", "sources": [_PLAIN_SOURCE]},
    "plain.AgentResponse": {
        "answer": "Middleware. [1]",
        "sources": [_PLAIN_SOURCE],
        "model_used": "gemini-1.5-pro",
        "latency": 812,
    },
    "plain.IngestResult": {
        "files_processed": 3,
        "chunks_created": 12,
        "errors": [],
        "exit_code": 0,
    },
    "plain.PlainError": {"detail": "Try again."},
    "chat.ChatRequest": {
        "message": "How do ROS 2 nodes communicate?",
        "session_id": SESSION,
        "stream": False,
        "top_k": 5,
        "similarity_threshold": 0.7,
    },
    "chat.ChatResponse": {
        "response": "ROS 2 nodes communicate through a publish-subscribe mechanism using topics. "
        "Nodes can publish messages to topics and subscribe to receive messages from topics "
        "they're interested in.",
        "confidence": 0.87,
        "sources": [_CHAT_SOURCE],
        "session_id": SESSION,
        "timestamp": "2025-12-17T14:23:45.123Z",
        "confidence_level": "high",
        "should_answer": True,
    },
    "chat.Source": _CHAT_SOURCE,
    "chat.ConversationThread": {
        "thread_id": SESSION,
        "messages": _MESSAGES,
        "created_at": "2025-12-17T14:20:00.000Z",
        "updated_at": "2025-12-17T14:21:00.000Z",
        "topic_summary": "Discussion about URDF robot description format and examples",
        "metadata": {"user_id": "user123", "tags": ["ros2", "urdf", "robotics"]},
    },
    "chat.Message": _MESSAGES[1],
    "chat.RetrievalResult": {
        "chunks": [
            "ROS 2 nodes communicate through a publish-subscribe mechanism...",
            "Topics in ROS 2 are named channels that carry typed messages...",
        ],
        "scores": [0.92, 0.85],
        "metadata": _CHUNKS,
        "average_score": 0.885,
        "has_sufficient_context": True,
        "query_embedding": [0.012, -0.034, 0.056] * 512,
    },
    "chat.ChunkMetadata": _CHUNKS[0],
    "chat.ConfidenceMetrics": {
        "average_similarity": 0.87,
        "min_similarity": 0.78,
        "max_similarity": 0.94,
        "num_chunks": 5,
        "chunk_diversity": 0.23,
        "confidence_level": "high",
        "should_answer": True,
    },
    "chat.ChatError": {
        "error_code": "NOT_FOUND",
        "message": "There is no such thread.",
        "suggested_action": "Check its id.",
        "request_id": SESSION,
    },
}
