"""The query contract (book agent): ``POST /query``.

A refusal has ``is_refusal: true`` and a ``refusal_reason``.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from bythebook.documents.query import Query, Response, Source, read, show
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
from bythebook.server.contracts.wire_types import Call, may_pass, sentence_of, status_of

__all__ = ["Query", "Response", "Source", "read", "show"]  # from documents/query.py


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


def fail(error: BookError, _: Call | None = None) -> tuple[int, Error]:
    kind = next(kind for family, kind in _ERROR_TYPES if isinstance(error, family))
    return status_of(error), Error(
        message=sentence_of(error),
        error_type=kind,
        recoverable=may_pass(error),
    )
