"""The envelope contract (answer generation agent): ``POST /api/v2/query`` and ``/api/query``.

Every outcome is returned in one envelope with exactly one of answer, refusal and error. A refusal
has ``status: "refused"``.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Annotated, Self

from fastapi import APIRouter, Request
from pydantic import (
    UUID4,
    BaseModel,
    Field,
    HttpUrl,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bythebook.answering.routing import Mode, mode_of
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
from bythebook.refusals import Refusal, RefusalType
from bythebook.server.contracts.base import Contract, Services, example
from bythebook.server.contracts.errors import (
    by_class,
    is_ours,
    message_of,
    retry_after,
    sentence_of,
    status_of,
)
from bythebook.server.examples import CALL, reply_responses
from bythebook.server.requests import Call, Client, call_of
from bythebook.types import Answer, Citation, Question, Reply

LEAST_SCORE = 0.4  # of the best chunk; below it, RefusalType.LOW_RELEVANCE
_LONGEST_ANSWER = 2000
_LONGEST_MESSAGE = 200
_LONGEST_REFERENCE = 500


class EnvelopeQueryRequest(BaseModel):
    model_config = example(
        query="How does ROS 2 work?",
        selected_text=None,
        top_k=5,
        session_id="550e8400-e29b-41d4-a716-446655440000",
    )

    query: Annotated[Text, StringConstraints(max_length=500)]
    selected_text: Selection | None = Field(None, description="answer only from this text")
    top_k: int = Field(5, ge=1, le=20, strict=True)
    session_id: UUID4 | None = Field(None, description="for the rate limit and the query log")
    # Extension to envelope:
    page_url: PageUrl | None = Field(None, description="the page that contains the selected text")

    @field_validator("query", mode="before")
    @classmethod
    def _is_not_empty(cls, value: object) -> object:
        if isinstance(value, str) and not value.strip():
            raise ValueError("Query cannot be empty")
        return value


class EnvelopeCitation(BaseModel):
    chapter: str | None = None
    section: str | None = None
    source_url: HttpUrl | None = None
    referenced_text: str | None = Field(None, max_length=_LONGEST_REFERENCE)

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not (self.chapter or self.section or self.source_url):
            raise ValueError("Citation must have at least one of: chapter, section, source_url")
        return self


class EnvelopeGroundedAnswer(BaseModel):
    text: str = Field(min_length=1, max_length=_LONGEST_ANSWER)
    citations: list[EnvelopeCitation] = Field(min_length=1)
    mode: Mode


class EnvelopeRefusalMessage(BaseModel):
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


class EnvelopeErrorCode(StrEnum):
    QDRANT_TIMEOUT = "QDRANT_TIMEOUT"
    COHERE_FAILURE = "COHERE_FAILURE"
    OPENROUTER_TIMEOUT = "OPENROUTER_TIMEOUT"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"


class EnvelopeErrorDetail(BaseModel):
    code: EnvelopeErrorCode
    message: str = Field(min_length=1, max_length=_LONGEST_MESSAGE)
    details: str | None = Field(None, max_length=500)  # for logs only; never sent
    retry_after: int | None = Field(None, ge=0)


class EnvelopeResponseStatus(StrEnum):
    SUCCESS = "success"
    REFUSED = "refused"
    ERROR = "error"


class EnvelopeResponseMetadata(BaseModel):
    chunks_retrieved: int = Field(ge=0)
    processing_time_ms: int = Field(ge=0)
    session_id: uuid.UUID | None
    request_id: uuid.UUID


class EnvelopeQueryResponse(Degradable):
    status: EnvelopeResponseStatus
    answer: EnvelopeGroundedAnswer | None = None
    refusal: EnvelopeRefusalMessage | None = None
    error: EnvelopeErrorDetail | None = None
    metadata: EnvelopeResponseMetadata

    @model_validator(mode="after")
    def _has_the_field_of_its_status(self) -> Self:
        fields = dict(zip(EnvelopeResponseStatus, ("answer", "refusal", "error"), strict=True))
        present = [name for name in fields.values() if getattr(self, name) is not None]
        if fields[self.status] not in present:
            raise ValueError(f"{fields[self.status]} required when status={self.status}")
        if len(present) != 1:
            raise ValueError("Exactly one of answer, refusal, error must be present")
        return self


def read(body: EnvelopeQueryRequest) -> Question:
    return Question(
        text=body.query,
        selection=body.selected_text,
        selection_url=body.page_url,
        top_k=body.top_k,
        min_score=LEAST_SCORE,
        current_page=body.page_url,
    )


def show(reply: Reply, call: Call | None = None) -> EnvelopeQueryResponse:
    reply = shortened(reply, chars=_LONGEST_ANSWER)
    outcome = reply.outcome
    answer = _answer(outcome, reply.question) if isinstance(outcome, Answer) else None
    chunks, milliseconds = len(reply.evidence.considered), reply.timings.total_ms
    return EnvelopeQueryResponse(
        status=EnvelopeResponseStatus.SUCCESS if answer else EnvelopeResponseStatus.REFUSED,
        answer=answer,
        refusal=_refusal(outcome) if isinstance(outcome, Refusal) else None,
        metadata=_metadata(call or Call(), chunks=chunks, milliseconds=milliseconds),
        degraded=degraded(reply.vectors),
    )


def _answer(answer: Answer, question: Question) -> EnvelopeGroundedAnswer:
    return EnvelopeGroundedAnswer(
        text=answer.text,
        citations=[_citation(citation) for citation in answer.citations],
        mode=mode_of(question),
    )


def _refusal(refusal: Refusal) -> EnvelopeRefusalMessage:
    return EnvelopeRefusalMessage(
        refusal_type=refusal.type, reason=refusal.text, nearby=nearby_topics(refusal)
    )


def _citation(citation: Citation) -> EnvelopeCitation:
    return EnvelopeCitation(
        chapter=citation.place.chapter or None,
        section=named(citation.place.heading),
        source_url=HttpUrl(citation.url) if is_web_address(citation.url) else None,
        referenced_text=citation.quote[:_LONGEST_REFERENCE],
    )


def _metadata(call: Call, *, chunks: int, milliseconds: float) -> EnvelopeResponseMetadata:
    return EnvelopeResponseMetadata(
        chunks_retrieved=chunks,
        processing_time_ms=round(milliseconds),
        session_id=call.session,
        request_id=_uuid(call.request_id),
    )


def _uuid(request_id: str) -> uuid.UUID:
    """Return the request id as a UUID, which envelope requires; same string, same UUID."""
    try:
        return uuid.UUID(request_id)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, request_id)


def fail(error: BookError, call: Call | None = None) -> tuple[int, EnvelopeQueryResponse]:
    call = call or Call()
    is_timeout = isinstance(error, ServiceError) and error.timed_out
    message = sentence_of(error)
    if len(message) > _LONGEST_MESSAGE:
        message = message_of(error)[:_LONGEST_MESSAGE]
    ours = EnvelopeErrorCode.QDRANT_TIMEOUT
    code = by_class(error, _CODES, ours if is_ours(error) else EnvelopeErrorCode.VALIDATION_FAILED)
    detail = EnvelopeErrorDetail(code=code, message=message, retry_after=retry_after(error))
    return 504 if is_timeout else status_of(error), EnvelopeQueryResponse(
        status=EnvelopeResponseStatus.ERROR,
        error=detail,
        metadata=_metadata(call, chunks=0, milliseconds=call.elapsed_ms),
    )


_CODES: dict[type[BookError], EnvelopeErrorCode] = {
    RateLimited: EnvelopeErrorCode.RATE_LIMIT_EXCEEDED,
    EmbedderFailed: EnvelopeErrorCode.COHERE_FAILURE,
    WriterFailed: EnvelopeErrorCode.OPENROUTER_TIMEOUT,
}


def add_routes(router: APIRouter, services: Services) -> None:
    async def query(
        body: EnvelopeQueryRequest, client: Client, request: Request
    ) -> EnvelopeQueryResponse:
        """Ask the book, or only a selection of it; `status` is success, refused or error."""
        asker = replace(client, session=str(body.session_id) if body.session_id else None)
        return show(await services.reply(read(body), asker, request), call_of(request))

    for path in services.paths("envelope", "/api/v2/query"):
        router.post(path, responses=reply_responses(partial(show, call=CALL)))(query)


CONTRACT = Contract(
    "envelope",
    "The same envelope for every outcome: `status` is success, refused or error.",
    error=EnvelopeQueryResponse,
    fail=fail,
    add_routes=add_routes,
    error_code="error.code",
    statuses=(504,),
)
