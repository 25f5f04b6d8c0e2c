"""The query contract (book agent): ``POST /query``.

A refusal has ``is_refusal: true`` and a ``refusal_reason``. In Python,
``bythebook.respond()`` takes the same request and returns the same response.
"""

from __future__ import annotations

from enum import StrEnum

from fastapi import APIRouter, Request
from pydantic import BaseModel

from bythebook import errors
from bythebook.documents.query import Query, QueryResponse, read, show
from bythebook.errors import BookError
from bythebook.server.contracts.base import Contract, Services
from bythebook.server.contracts.errors import by_class, may_pass, sentence_of, status_of
from bythebook.server.examples import reply_responses
from bythebook.server.requests import Call, Client


class QueryErrorType(StrEnum):
    """Error states of the query contract, and the errors of a request before it has a state."""

    INVALID_QUERY = "InvalidQuery"
    QUERY_TOO_LARGE = "QueryTooLarge"
    NOT_ALLOWED = "NotAllowed"
    NOT_FOUND = "NotFound"
    RATE_LIMITED = "RateLimited"
    EMBEDDING_FAILED = "EmbeddingFailed"
    SEARCH_FAILED = "SearchFailed"
    RESPONDING_FAILED = "RespondingFailed"


class QueryError(BaseModel):
    message: str
    error_type: QueryErrorType
    recoverable: bool  # the same query may succeed later


_ERROR_TYPES: dict[type[BookError], QueryErrorType] = {
    errors.TooLarge: QueryErrorType.QUERY_TOO_LARGE,
    errors.InvalidInput: QueryErrorType.INVALID_QUERY,
    errors.NotAllowed: QueryErrorType.NOT_ALLOWED,
    errors.NotFound: QueryErrorType.NOT_FOUND,
    errors.RateLimited: QueryErrorType.RATE_LIMITED,
    errors.EmbedderFailed: QueryErrorType.EMBEDDING_FAILED,
    errors.WriterFailed: QueryErrorType.RESPONDING_FAILED,
}


def fail(error: BookError, _: Call | None = None) -> tuple[int, QueryError]:
    return status_of(error), QueryError(
        message=sentence_of(error),
        error_type=by_class(error, _ERROR_TYPES, QueryErrorType.SEARCH_FAILED),
        recoverable=may_pass(error),
    )


def add_routes(router: APIRouter, services: Services) -> None:
    @router.post("/query", responses=reply_responses(show))
    async def query(body: Query, client: Client, request: Request) -> QueryResponse:
        """Ask the book; `is_refusal` is true if the book does not contain an answer."""
        return show(await services.reply(read(body), client, request))


CONTRACT = Contract(
    "query",
    "One question, one answer; `is_refusal` tells a refusal from an answer.",
    error=QueryError,
    fail=fail,
    add_routes=add_routes,
    error_code="error_type",
)
