"""Requests, answers and errors of the chat contract."""

from __future__ import annotations

import uuid
from typing import Annotated, Self

from pydantic import UUID4, BaseModel, Field, StringConstraints, model_validator

from bythebook.documents.fields import (
    Moment,
    PageUrl,
    Selection,
    Share,
    Text,
    Threshold,
    Writing,
    writing_of,
)
from bythebook.documents.fit import citations_of, sources_of
from bythebook.errors import BookError
from bythebook.server.contracts.base import citation_fields, example
from bythebook.server.contracts.envelope import LEAST_SCORE
from bythebook.server.contracts.errors import action_of, is_ours, message_of, status_of
from bythebook.server.contracts.plain import LEAST_SCORE as BOOK_THRESHOLD
from bythebook.server.requests import Call
from bythebook.types import Answer, Citation, Level, Question, Reply

_LONGEST_CHUNK = 500  # chunk_text: "max 500 chars for display"


class ChatRequest(BaseModel):
    model_config = example(
        message="How do ROS 2 nodes communicate?",
        session_id="550e8400-e29b-41d4-a716-446655440000",
        stream=False,
        top_k=5,
        similarity_threshold=0.7,
    )

    message: Annotated[Text, StringConstraints(max_length=1000)]
    session_id: UUID4 | None = Field(None, description="the conversation; null starts a new one")
    stream: bool = Field(False, strict=True)
    top_k: int = Field(5, ge=1, le=10, strict=True)
    similarity_threshold: Threshold = 0.7
    # Extensions to chat:
    selected_text: Selection | None = Field(None, description="answer only from this text")
    page_url: PageUrl | None = Field(
        None, description="the page being read, preferred among equally good passages"
    )
    whole_evidence: bool = Field(
        False,
        strict=True,
        description="use the book's own threshold, and also weaker passages, for a fuller answer",
    )


class ChatSource(BaseModel):
    chunk_text: str = Field(max_length=_LONGEST_CHUNK)
    similarity_score: Share
    chapter: str
    section: str
    url: str
    chunk_index: int = Field(ge=0)


class ChatMessageCitation(BaseModel):
    """Quote in a message, as it was when the message was sent."""

    number: int = Field(ge=1)
    source: int = Field(ge=1)  # of the marker: ``sources[source - 1]``
    quote: str
    chapter: str
    section: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    score: Share


class ChatResponse(Writing):
    response: str = Field(min_length=1)
    confidence: Share
    sources: list[ChatSource]
    session_id: UUID4
    timestamp: Moment
    confidence_level: Level
    should_answer: bool
    # Extension to chat, present only if false: the thread could not be stored.
    persisted: bool = Field(True, exclude_if=lambda persisted: persisted)
    # Extension to chat: the quotes behind the markers of the response; absent on a refusal.
    citations: list[ChatMessageCitation] = Field([], exclude_if=lambda citations: not citations)
    # Extension to chat, present only if not 0: generated sentences removed because the book does
    # not support them.
    withheld: int = Field(0, ge=0, exclude_if=lambda count: not count)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        check_level(self.confidence_level, should_answer=self.should_answer)
        if self.should_answer and not self.sources:
            raise ValueError("sources must be non-empty if should_answer is true")
        return self


def check_level(level: Level, *, should_answer: bool) -> None:
    if should_answer == (level is Level.INSUFFICIENT):
        raise ValueError("should_answer must match confidence_level")


class ChatError(BaseModel):
    error_code: str
    message: str
    suggested_action: str
    request_id: str


_ERROR_CODES = {
    400: "INVALID_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    413: "PAYLOAD_TOO_LARGE",
    429: "RATE_LIMIT_EXCEEDED",
    503: "SERVICE_UNAVAILABLE",
}


def read(body: ChatRequest, *, request: str | None = None) -> Question:
    """Convert a request to a question.

    Selected text, an envelope feature, gets envelope's floor unless the body sets a threshold.
    Repeating a request that starts a thread starts the same thread.
    """
    new_thread = uuid.uuid4() if request is None else uuid.UUID(request[:32], version=4)
    is_default = "similarity_threshold" not in body.model_fields_set
    floor = LEAST_SCORE if body.selected_text and is_default else body.similarity_threshold
    if body.whole_evidence:
        floor = BOOK_THRESHOLD
    return Question(
        text=body.message,
        thread=str(body.session_id or new_thread),
        top_k=body.top_k,
        min_score=floor,
        min_evidence=0.0 if body.whole_evidence else floor,
        min_confidence=Level.INSUFFICIENT if body.whole_evidence else Level.LOW,
        selection=body.selected_text,
        selection_url=body.page_url if body.selected_text else None,
        current_page=body.page_url,
    )


def show(reply: Reply, call: Call | None = None) -> ChatResponse:
    outcome, confidence = reply.outcome, reply.evidence.confidence
    return ChatResponse(
        response=outcome.by_source.full_text if isinstance(outcome, Answer) else outcome.text,
        confidence=confidence.average if isinstance(outcome, Answer) else 0.0,
        sources=[show_source(citation) for citation in sources_of(reply)],
        session_id=uuid.UUID(reply.question.thread) if reply.question.thread else uuid.uuid4(),
        timestamp=reply.answered_at or (call or Call()).at,
        confidence_level=confidence.level,
        should_answer=confidence.should_answer,
        persisted=reply.persisted,
        citations=[show_citation(citation) for citation in citations_of(reply)],
        withheld=reply.withheld,
        **dict(writing_of(reply)),
    )


def show_source(citation: Citation) -> ChatSource:
    """Show the quoted words; the rest of the chunk was not verified."""
    return ChatSource(
        chunk_text=citation.quote[:_LONGEST_CHUNK],
        similarity_score=citation.score,
        chapter=citation.place.chapter,
        section=citation.place.heading,
        url=citation.url,
        chunk_index=citation.position,
    )


def show_citation(citation: Citation) -> ChatMessageCitation:
    return ChatMessageCitation(
        **citation_fields(citation), source=citation.source, score=citation.score
    )


def fail(error: BookError, call: Call | None = None) -> tuple[int, ChatError]:
    status = status_of(error)
    usual = _ERROR_CODES[503 if is_ours(error) else 400]
    return status, ChatError(
        error_code=_ERROR_CODES.get(status, usual),
        message=message_of(error),
        suggested_action=action_of(error),
        request_id=(call or Call()).request_id,
    )
