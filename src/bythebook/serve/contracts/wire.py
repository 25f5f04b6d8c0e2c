"""What all contracts share: types of fields, the call they answer, and how errors are told.

An error's own message is for the log. What a client reads is chosen here, once for all five, so
that no contract can let a path, an address or a vendor's words out.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

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
from bythebook.model import Answer, Refusal, Reply, VectorState

# --- types of fields ------------------------------------------------------------------------------


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul_character", "holds a NUL character")
    return text


def _to_the_web(url: str) -> str:
    """An address a browser may be sent to: a client's ``javascript:`` would come back as a link."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = "none"
    if scheme not in ("", "http", "https"):
        raise PydanticCustomError("web_address", "is not an address of the web")
    return url


def moment(when: datetime) -> str:
    """``2025-12-17T14:23:45.123Z``: ISO 8601 in UTC, as all the contracts write it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> datetime:
    return datetime.now(UTC)


def _in_utc(when: datetime) -> datetime:
    """A time without a zone is taken as UTC."""
    return when if when.tzinfo else when.replace(tzinfo=UTC)


Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# Of a request: 0 and 1 are numbers, but true, false and "0.5" are not.
Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Milliseconds = Annotated[float, Field(ge=0)]
_AS_UTC = PlainSerializer(moment, return_type=str, when_used="json")
Moment = Annotated[AwareDatetime, _AS_UTC]
# Of a request: a time without a zone is one of UTC, null is now.
SentMoment = Annotated[
    datetime,
    AfterValidator(_in_utc),
    BeforeValidator(
        lambda when: now() if when is None else when, json_schema_input_type=datetime | None
    ),
    _AS_UTC,
]
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_without_nul)
]
# 10 to 5000 characters (S2); longer than a word, shorter than a chapter.
Selection = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=10, max_length=5000),
    AfterValidator(_without_nul),
]
PageUrl = Annotated[Text, StringConstraints(max_length=2000), AfterValidator(_to_the_web)]


def is_web_address(url: str) -> bool:
    return url.startswith(("http://", "https://"))


class NearbyTopic(BaseModel):
    title: str
    url: str


def nearby_topics(outcome: Answer | Refusal) -> list[NearbyTopic]:
    """What the book does cover, beside a no."""
    topics = outcome.nearby if isinstance(outcome, Refusal) else ()
    return [NearbyTopic(title=topic.title, url=topic.url) for topic in topics]


# Sent while the book is searched by keywords alone: in this header, and as ``degraded``.
DEGRADED_HEADER = "X-Degraded"
KEYWORD_SEARCH: Literal["keyword-search"] = "keyword-search"


class Degradable(BaseModel):
    """Says that a reply was made without search by meaning; absent in the normal case."""

    degraded: Literal["keyword-search"] | None = Field(None, exclude_if=lambda value: value is None)


def degraded(vectors: VectorState) -> Literal["keyword-search"] | None:
    return None if vectors is VectorState.READY else KEYWORD_SEARCH


class ModelUsage(BaseModel):
    """What language models read and wrote for an answer."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    calls: int = Field(ge=1)
    cost_usd: float | None = Field(None, ge=0, exclude_if=lambda cost: cost is None)


class Writing(Degradable):
    """How an answer came about, where a language model had a hand in it: beside a contract's own
    fields, and only if there is something to tell."""

    # Why the offline writer wrote it, or the rest of it.
    fallback: str | None = Field(None, exclude_if=lambda why: why is None)
    usage: ModelUsage | None = Field(None, exclude_if=lambda usage: usage is None)
    cached: bool = Field(False, exclude_if=lambda cached: not cached)  # the same was asked before


def writing_of(reply: Reply) -> Writing:
    counted = reply.usage
    usage = None
    if counted.calls:
        usage = ModelUsage(
            prompt_tokens=counted.prompt_tokens,
            completion_tokens=counted.completion_tokens,
            calls=counted.calls,
            cost_usd=counted.cost_usd,
        )
    return Writing(
        fallback=reply.fallback,
        usage=usage,
        cached=reply.cached,
        degraded=degraded(reply.vectors),
    )


# --- the call that is answered --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """What a wire tells beside the reply: which request this was, whose, when and how long."""

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
    """What a client did wrong has its own number; all else is ours, and may pass."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 503)


def is_ours(error: BookError) -> bool:
    return status_of(error) >= 500


def may_pass(error: BookError) -> bool:
    """Whether the same request may succeed later, with nothing changed."""
    if isinstance(error, ServiceError):
        return error.retryable
    return is_ours(error) or isinstance(error, RateLimited)


def message_of(error: BookError) -> str:
    """What happened, in words for a reader."""
    if not is_ours(error):
        return error.message
    said = next((said for kind, said in _OUT_OF_ORDER if isinstance(error, kind)), _NOT_OPEN)
    return said if may_pass(error) else said.replace("temporarily ", "")


def action_of(error: BookError) -> str:
    """What to do about it; a cure for the operator is none for the reader."""
    if not is_ours(error):
        return error.cure or "Change the request."
    return _LATER if may_pass(error) else _NOT_BY_ITSELF


def sentence_of(error: BookError) -> str:
    return f"{message_of(error)} {action_of(error)}"


def retry_after(error: BookError) -> int | None:
    """Whole seconds until it is worth another try, where that is known."""
    seconds = error.retry_after if isinstance(error, RateLimited | ServiceError) else None
    return None if seconds is None else math.ceil(seconds)
