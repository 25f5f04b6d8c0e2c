"""The envelope contract (answer generation agent): ``POST /api/v2/query`` and ``/api/query``.

Every outcome is returned in one envelope with exactly one of answer, refusal and error. A refusal
has ``status: "refused"``.
"""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    UUID4,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bythebook.answering.routing import Mode, plan
from bythebook.documents.fields import (
    Degradable,
    NearbyTopic,
    PageUrl,
    Selection,
    Text,
    degraded,
    is_web_address,
    nearby_topics,
)
from bythebook.documents.fit import named, shortened
from bythebook.errors import BookError, EmbedderFailed, RateLimited, ServiceError, WriterFailed
from bythebook.server.contracts.wire_types import (
    Call,
    is_ours,
    message_of,
    retry_after,
    sentence_of,
    status_of,
)
from bythebook.types import Answer, Question, Refusal, RefusalType, Reply
from bythebook.types import Citation as Cited

LEAST_SCORE = 0.4  # of the best chunk; below it, RefusalType.LOW_RELEVANCE
_LONGEST_ANSWER = 2000
_LONGEST_MESSAGE = 200


class QueryRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "How does ROS 2 work?",
                    "selected_text": None,
                    "top_k": 5,
                    "session_id": "550e8400-e29b-41d4-a716-446655440000",
                }
            ]
        }
    )

    query: Annotated[Text, StringConstraints(max_length=500)]
    selected_text: Selection | None = None
    top_k: int = Field(5, ge=1, le=20, strict=True)
    session_id: UUID4 | None = None
    # Extension to envelope: the URL of the page being read, which contains the selection.
    page_url: PageUrl | None = None

    @field_validator("query", mode="before")
    @classmethod
    def _is_not_empty(cls, value: object) -> object:
        if isinstance(value, str) and not value.strip():
            raise ValueError("Query cannot be empty")
        return value


class Citation(BaseModel):
    chapter: str | None = None
    section: str | None = None
    source_url: HttpUrl | None = None
    referenced_text: str | None = Field(None, max_length=500)

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not (self.chapter or self.section or self.source_url):
            raise ValueError("Citation must have at least one of: chapter, section, source_url")
        return self


class GroundedAnswer(BaseModel):
    text: str = Field(min_length=1, max_length=_LONGEST_ANSWER)
    citations: list[Citation] = Field(min_length=1)
    mode: Mode


class RefusalMessage(BaseModel):
    refusal_type: RefusalType
    reason: str
    # Extension to envelope:
    nearby: list[NearbyTopic] = []

    @field_validator("reason")
    @classmethod
    def _is_the_standard_one(cls, value: str, info: ValidationInfo) -> str:
        kind = info.data.get("refusal_type")
        if kind is not None and value != Refusal(kind).text:
            raise ValueError(f'Refusal message must be: "{Refusal(kind).text}"')
        return value


class ErrorCode(StrEnum):
    QDRANT_TIMEOUT = "QDRANT_TIMEOUT"
    COHERE_FAILURE = "COHERE_FAILURE"
    OPENROUTER_TIMEOUT = "OPENROUTER_TIMEOUT"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"


class ErrorDetail(BaseModel):
    code: ErrorCode
    message: str = Field(min_length=1, max_length=_LONGEST_MESSAGE)
    details: str | None = Field(None, max_length=500)  # for logs only; never sent
    retry_after: int | None = Field(None, ge=0)


class ResponseStatus(StrEnum):
    SUCCESS = "success"
    REFUSED = "refused"
    ERROR = "error"


class ResponseMetadata(BaseModel):
    chunks_retrieved: int = Field(ge=0)
    processing_time_ms: int = Field(ge=0)
    session_id: uuid.UUID | None
    request_id: uuid.UUID


class QueryResponse(Degradable):
    status: ResponseStatus
    answer: GroundedAnswer | None = None
    refusal: RefusalMessage | None = None
    error: ErrorDetail | None = None
    metadata: ResponseMetadata

    @model_validator(mode="after")
    def _holds_what_its_status_says(self) -> Self:
        fields = {
            ResponseStatus.SUCCESS: "answer",
            ResponseStatus.REFUSED: "refusal",
            ResponseStatus.ERROR: "error",
        }
        present = [name for name in fields.values() if getattr(self, name) is not None]
        if fields[self.status] not in present:
            raise ValueError(f"{fields[self.status]} required when status={self.status}")
        if len(present) != 1:
            raise ValueError("Exactly one of answer, refusal, error must be present")
        return self


def read(body: QueryRequest) -> Question:
    return Question(
        text=body.query,
        selection=body.selected_text,
        selection_url=body.page_url,
        top_k=body.top_k,
        floor=LEAST_SCORE,
        page=body.page_url,
    )


def show(reply: Reply, call: Call | None = None) -> QueryResponse:
    call = call or Call()
    reply = shortened(reply, chars=_LONGEST_ANSWER)
    outcome = reply.outcome
    answered = isinstance(outcome, Answer)
    return QueryResponse(
        status=ResponseStatus.SUCCESS if answered else ResponseStatus.REFUSED,
        answer=_answer(outcome, reply.question) if isinstance(outcome, Answer) else None,
        refusal=_refusal(outcome) if isinstance(outcome, Refusal) else None,
        metadata=ResponseMetadata(
            chunks_retrieved=len(reply.evidence.considered),
            processing_time_ms=round(reply.timings.total_ms),
            session_id=call.session,
            request_id=_uuid(call.request_id),
        ),
        degraded=degraded(reply.vectors),
    )


def fail(error: BookError, call: Call | None = None) -> tuple[int, QueryResponse]:
    call = call or Call()
    late = isinstance(error, ServiceError) and error.timed_out
    said = sentence_of(error)
    return 504 if late else status_of(error), QueryResponse(
        status=ResponseStatus.ERROR,
        error=ErrorDetail(
            code=_code(error),
            message=said if len(said) <= _LONGEST_MESSAGE else message_of(error)[:_LONGEST_MESSAGE],
            retry_after=retry_after(error),
        ),
        metadata=ResponseMetadata(
            chunks_retrieved=0,
            processing_time_ms=round(call.elapsed_ms),
            session_id=call.session,
            request_id=_uuid(call.request_id),
        ),
    )


def _code(error: BookError) -> ErrorCode:
    if isinstance(error, RateLimited):
        return ErrorCode.RATE_LIMIT_EXCEEDED
    if not is_ours(error):
        return ErrorCode.VALIDATION_FAILED
    if isinstance(error, EmbedderFailed):
        return ErrorCode.COHERE_FAILURE
    if isinstance(error, WriterFailed):
        return ErrorCode.OPENROUTER_TIMEOUT
    return ErrorCode.QDRANT_TIMEOUT


def _answer(answer: Answer, question: Question) -> GroundedAnswer:
    return GroundedAnswer(
        text=answer.text,
        citations=[_citation(each) for each in answer.citations],
        mode=plan(question).mode,
    )


def _citation(cited: Cited) -> Citation:
    return Citation(
        chapter=cited.place.chapter or None,
        section=named(cited.place.heading),
        source_url=HttpUrl(cited.url) if is_web_address(cited.url) else None,
        referenced_text=cited.quote,
    )


def _refusal(refusal: Refusal) -> RefusalMessage:
    return RefusalMessage(
        refusal_type=refusal.type, reason=refusal.text, nearby=nearby_topics(refusal)
    )


def _uuid(name: str) -> uuid.UUID:
    """Return the request id as a UUID, which envelope requires; same string, same UUID."""
    try:
        return uuid.UUID(name)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, name)
