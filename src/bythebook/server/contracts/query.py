"""The query contract (book agent): ``POST /query``, and ``respond(Query) -> Response`` in Python.

A refusal has ``is_refusal: true`` and a ``refusal_reason``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bythebook.errors import (
    BookError,
    EmbedderFailed,
    InvalidInput,
    NotAllowed,
    NotFound,
    RateLimited,
    TooLarge,
    WriterFailed,
)
from bythebook.server.contracts.fit import by_place, citations_of, shortened
from bythebook.server.contracts.wire_types import (
    Call,
    Degradable,
    SentMoment,
    Text,
    degraded,
    may_pass,
    now,
    sentence_of,
    status_of,
)
from bythebook.types import Question, Refusal, Reply

TOP_K = 5
SIMILARITY_THRESHOLD = 0.75
MAX_QUERY_LENGTH = 2000


class Query(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "How do ROS 2 nodes exchange messages?"}]}
    )

    text: Annotated[Text, StringConstraints(max_length=MAX_QUERY_LENGTH)]
    timestamp: SentMoment = Field(default_factory=now)


class Source(BaseModel):
    chapter: str
    section: str
    module: str


class Response(Degradable):
    answer: str = Field(min_length=1)
    sources: list[Source]
    is_refusal: bool = False
    refusal_reason: str | None = None

    @model_validator(mode="after")
    def _a_refusal_says_why(self) -> Self:
        if self.is_refusal and not self.refusal_reason:
            raise ValueError("a refusal must have a refusal_reason")
        return self


class ErrorType(StrEnum):
    """Error states of the query contract, and the errors of a request before it has a state."""

    INVALID_QUERY = "InvalidQuery"
    QUERY_TOO_LARGE = "QueryTooLarge"
    NOT_ALLOWED = "NotAllowed"
    NOT_FOUND = "NotFound"
    RATE_LIMITED = "RateLimited"
    EMBEDDING_FAILED = "EmbeddingFailed"
    SEARCH_FAILED = "SearchFailed"
    RESPONDING_FAILED = "RespondingFailed"


class Error(BaseModel):
    message: str
    error_type: ErrorType
    recoverable: bool  # the same query may succeed later


_ERROR_TYPES: tuple[tuple[type[BookError], ErrorType], ...] = (
    (TooLarge, ErrorType.QUERY_TOO_LARGE),
    (InvalidInput, ErrorType.INVALID_QUERY),
    (NotAllowed, ErrorType.NOT_ALLOWED),
    (NotFound, ErrorType.NOT_FOUND),
    (RateLimited, ErrorType.RATE_LIMITED),
    (EmbedderFailed, ErrorType.EMBEDDING_FAILED),
    (WriterFailed, ErrorType.RESPONDING_FAILED),
    (BookError, ErrorType.SEARCH_FAILED),
)


def read(body: Query) -> Question:
    return Question(text=body.text, top_k=TOP_K, floor=SIMILARITY_THRESHOLD)


def show(reply: Reply) -> Response:
    reply = shortened(by_place(reply), sources=TOP_K)
    refusal = reply.outcome if isinstance(reply.outcome, Refusal) else None
    return Response(
        answer=reply.outcome.text,
        sources=[
            Source(
                chapter=citation.place.chapter,
                section=citation.place.heading,
                module=citation.place.module,
            )
            for citation in citations_of(reply)
        ],
        is_refusal=refusal is not None,
        refusal_reason=refusal.type.value if refusal else None,
        degraded=degraded(reply.vectors),
    )


def fail(error: BookError, _: Call | None = None) -> tuple[int, Error]:
    kind = next(kind for family, kind in _ERROR_TYPES if isinstance(error, family))
    return status_of(error), Error(
        message=sentence_of(error),
        error_type=kind,
        recoverable=may_pass(error),
    )
