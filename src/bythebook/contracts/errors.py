"""Status codes and messages of errors, and what responses report of a request.

An error's own message is for logs. The message for clients is chosen here, once for all contracts,
so that none can leak a path, an address or a vendor's message.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import BaseModel

from bythebook import errors
from bythebook.contracts.fields import now
from bythebook.errors import BookError

T = TypeVar("T")

_STATUS: dict[type[BookError], int] = {
    errors.TooLarge: 413,
    errors.WrongHost: 421,
    errors.InvalidInput: 400,
    errors.NotAllowed: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.RateLimited: 429,
}
_UNAVAILABLE: dict[type[BookError], str] = {
    errors.StoreFailed: "The search service is temporarily unavailable.",
    errors.EmbedderFailed: "The embedding service is temporarily unavailable.",
    errors.WriterFailed: "The answer service is temporarily unavailable.",
    errors.DatabaseFailed: "The database is temporarily unavailable.",
}
_NOT_OPEN = "The book is not open for questions at the moment."
_LATER = "Try again in a moment."
_NOT_BY_ITSELF = "Whoever runs this book has to put it right."


@dataclass(frozen=True, slots=True)
class Call:
    """Metadata of a request that responses report: its ids, session, time and duration."""

    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    at: datetime = field(default_factory=now)
    elapsed_ms: float = 0.0
    session: uuid.UUID | None = None
    query: str | None = None  # the question's id in the query log


class Fail(Protocol):
    """Convert an error to the status code and body of a contract."""

    def __call__(self, error: BookError, call: Call | None = None, /) -> tuple[int, BaseModel]: ...


def by_class(error: BookError, table: Mapping[type[BookError], T], default: T) -> T:
    """Return the value of the error's class in the table, or of its nearest base class."""
    return next((table[kind] for kind in type(error).__mro__ if kind in table), default)


def status_of(error: BookError) -> int:
    """Return the 4xx status of a client error, or 503 for a server error."""
    return by_class(error, _STATUS, 503)


def is_ours(error: BookError) -> bool:
    return status_of(error) >= 500


def may_pass(error: BookError) -> bool:
    """Return whether the same request may succeed later, with nothing changed."""
    if isinstance(error, errors.ServiceError):
        return error.retryable
    return is_ours(error) or isinstance(error, errors.RateLimited)


def message_of(error: BookError) -> str:
    """Return the description of the error for clients."""
    if not is_ours(error):
        return error.message
    message = by_class(error, _UNAVAILABLE, _NOT_OPEN)
    return message if may_pass(error) else message.replace("temporarily ", "")


def action_of(error: BookError) -> str:
    """Return the suggested action; hints for operators are not shown to clients."""
    if not is_ours(error):
        return error.hint or "Change the request."
    return _LATER if may_pass(error) else _NOT_BY_ITSELF


def sentence_of(error: BookError) -> str:
    return f"{message_of(error)} {action_of(error)}"


def retry_after(error: BookError) -> int | None:
    """Return the whole seconds to wait before a retry, or None if unknown."""
    seconds = (
        error.retry_after if isinstance(error, errors.RateLimited | errors.ServiceError) else None
    )
    return None if seconds is None else math.ceil(seconds)
