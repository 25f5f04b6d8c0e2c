"""S4, the chat's contract: ``POST /chat/run``. It says no by ``should_answer: false``."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated

from pydantic import UUID4, BaseModel, Field, StringConstraints

from bythebook.errors import BookError, InvalidInput
from bythebook.model import Answer, Citation, Level, Question, Reply

Share = Annotated[float, Field(ge=0, le=1)]

_LONGEST_CHUNK = 500  # Source.chunk_text: "max 500 chars for display"


class ChatRequest(BaseModel):
    message: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
    session_id: UUID4 = Field(default_factory=uuid.uuid4)
    stream: bool = False
    top_k: int = Field(5, ge=1, le=10, strict=True)
    similarity_threshold: Share = 0.7


class Source(BaseModel):
    chunk_text: str = Field(max_length=_LONGEST_CHUNK)
    similarity_score: Share
    chapter: str
    section: str
    url: str
    chunk_index: int


class ChatResponse(BaseModel):
    response: str = Field(min_length=1)
    confidence: Share
    sources: list[Source]
    session_id: str
    timestamp: str
    confidence_level: Level
    should_answer: bool


class ChatError(BaseModel):
    error_code: str
    message: str
    suggested_action: str
    request_id: str


def read(body: ChatRequest) -> Question:
    return Question(
        text=body.message,
        thread=str(body.session_id),
        top_k=body.top_k,
        floor=body.similarity_threshold,
        needs=Level.LOW,
    )


def show(reply: Reply) -> ChatResponse:
    outcome, confidence = reply.outcome, reply.evidence.confidence
    citations = outcome.citations if isinstance(outcome, Answer) else ()
    positions = {hit.passage.id: hit.passage.position for hit in reply.evidence.hits}
    return ChatResponse(
        response=outcome.text,
        confidence=confidence.average if isinstance(outcome, Answer) else 0.0,
        sources=[_source(citation, positions) for citation in citations],
        session_id=reply.question.thread or "",
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        confidence_level=confidence.level,
        should_answer=confidence.should_answer,
    )


def fail(error: BookError) -> tuple[int, ChatError]:
    invalid = isinstance(error, InvalidInput)
    return 400 if invalid else 503, ChatError(
        error_code="INVALID_REQUEST" if invalid else "SERVICE_UNAVAILABLE",
        message=error.message,
        suggested_action=error.cure or "Try again later.",
        request_id=str(uuid.uuid4()),
    )


def _source(citation: Citation, positions: dict[str, int]) -> Source:
    return Source(
        chunk_text=citation.quote[:_LONGEST_CHUNK],
        similarity_score=citation.score,
        chapter=citation.place.chapter,
        section=citation.place.heading,
        url=citation.url,
        chunk_index=positions[citation.passage_id],
    )
