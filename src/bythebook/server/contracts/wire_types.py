"""Call metadata and error messages shared by all contracts.

An error's own message is for logs. The message for clients is chosen here, once for all five
contracts, so that none can leak a path, an address or a vendor's message.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field
from datetime import datetime

from bythebook.documents.fields import now
from bythebook.errors import (
    BookError,
    DatabaseFailed,
    EmbedderFailed,
    InvalidInput,
    NotAllowed,
    NotFound,
    RateLimited,
    ServiceError,
    StoreFailed,
    TooLarge,
    WriterFailed,
)

# --- call metadata --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """Metadata of a request that responses report: its ids, session, time and duration."""

    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    at: datetime = field(default_factory=now)
    elapsed_ms: float = 0.0
    session: uuid.UUID | None = None
    query: str | None = None  # the question's id in the query log


# --- errors ---------------------------------------------------------------------------------------

_STATUS: tuple[tuple[type[BookError], int], ...] = (
    (TooLarge, 413),
    (InvalidInput, 400),
    (NotAllowed, 401),
    (NotFound, 404),
    (RateLimited, 429),
)
_OUT_OF_ORDER: tuple[tuple[type[BookError], str], ...] = (
    (StoreFailed, "The search service is temporarily unavailable."),
    (EmbedderFailed, "The embedding service is temporarily unavailable."),
    (WriterFailed, "The answer service is temporarily unavailable."),
    (DatabaseFailed, "The database is temporarily unavailable."),
)
_NOT_OPEN = "The book is not open for questions at the moment."
_LATER = "Try again in a moment."
_NOT_BY_ITSELF = "Whoever runs this book has to put it right."


def status_of(error: BookError) -> int:
    """Return the 4xx status of a client error, or 503 for ours, which may be temporary."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 503)


def is_ours(error: BookError) -> bool:
    return status_of(error) >= 500


def may_pass(error: BookError) -> bool:
    """Return whether the same request may succeed later, with nothing changed."""
    if isinstance(error, ServiceError):
        return error.retryable
    return is_ours(error) or isinstance(error, RateLimited)


def message_of(error: BookError) -> str:
    """Return the description of the error for clients."""
    if not is_ours(error):
        return error.message
    said = next((said for kind, said in _OUT_OF_ORDER if isinstance(error, kind)), _NOT_OPEN)
    return said if may_pass(error) else said.replace("temporarily ", "")


def action_of(error: BookError) -> str:
    """Return the suggested action; an operator's remedy is not shown to clients."""
    if not is_ours(error):
        return error.hint or "Change the request."
    return _LATER if may_pass(error) else _NOT_BY_ITSELF


def sentence_of(error: BookError) -> str:
    return f"{message_of(error)} {action_of(error)}"


def retry_after(error: BookError) -> int | None:
    """Return the whole seconds to wait before a retry, or None if unknown."""
    seconds = error.retry_after if isinstance(error, RateLimited | ServiceError) else None
    return None if seconds is None else math.ceil(seconds)
