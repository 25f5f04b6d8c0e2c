"""Field types and models that several documents share, of replies and of HTTP contracts."""

from __future__ import annotations

from dataclasses import replace
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

from bythebook.language.text import well_formed
from bythebook.refusals import Refusal
from bythebook.text.selections import SELECTION
from bythebook.types import Answer, Citation, Reply, VectorState


def _check_characters(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul_character", "holds a NUL character")
    if well_formed(text) != text:
        raise PydanticCustomError("string_unicode", "holds half of a surrogate pair")
    return text


def _to_the_web(url: str) -> str:
    """Reject URLs that are not http(s): a ``javascript:`` URL would be returned as a link."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = "none"
    if scheme not in ("", "http", "https"):
        raise PydanticCustomError("web_address", "is not an address of the web")
    return url


def moment(when: datetime) -> str:
    """Format a time as all contracts do, ISO 8601 in UTC: ``2025-12-17T14:23:45.123Z``."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> datetime:
    return datetime.now(UTC)


def _in_utc(when: datetime) -> datetime:
    """Interpret a time without a time zone as UTC."""
    return when if when.tzinfo else when.replace(tzinfo=UTC)


Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# In requests: 0 and 1 are accepted as numbers; true, false and "0.5" are not.
Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Milliseconds = Annotated[float, Field(ge=0)]
_AS_UTC = PlainSerializer(moment, return_type=str, when_used="json")
Moment = Annotated[AwareDatetime, _AS_UTC]
# In requests: a time without a time zone is UTC, null is now.
SentMoment = Annotated[
    datetime,
    AfterValidator(_in_utc),
    BeforeValidator(
        lambda when: now() if when is None else when, json_schema_input_type=datetime | None
    ),
    _AS_UTC,
]
# Every text of a request has this type or one of the others below.
AnyText = Annotated[str, AfterValidator(_check_characters)]
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_check_characters)
]
# 10 to 5000 characters, from envelope: longer than a word, shorter than a chapter.
Selection = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=10, max_length=5000),
    AfterValidator(_check_characters),
]
PageUrl = Annotated[Text, StringConstraints(max_length=2000), AfterValidator(_to_the_web)]


def is_web_address(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def web_address(url: str, reader: str) -> str:
    """Return a URL of the web: a page without one is shown under the URL of the ``reader``."""
    return url if is_web_address(url) else reader + url.lstrip("/")


def with_web_address(citation: Citation, reader: str) -> Citation:
    """Return the citation with URLs of the web; a selection keeps what the client sent."""
    if citation.passage_id == SELECTION:
        return citation
    url, link = (web_address(each, reader) for each in (citation.url, citation.link))
    return replace(citation, url=url, link=link)


def with_web_addresses(reply: Reply, reader: str) -> Reply:
    outcome = reply.outcome
    if isinstance(outcome, Answer):
        citations = (with_web_address(citation, reader) for citation in outcome.citations)
        return replace(reply, outcome=replace(outcome, citations=tuple(citations)))
    related = outcome.related
    if related is not None:
        related = replace(related, link=web_address(related.link, reader))
    nearby = (replace(topic, url=web_address(topic.url, reader)) for topic in outcome.nearby)
    return replace(reply, outcome=replace(outcome, nearby=tuple(nearby), related=related))


class NearbyTopic(BaseModel):
    title: str
    url: str


def nearby_topics(outcome: Answer | Refusal) -> list[NearbyTopic]:
    """Return the topics near the question that the book does cover; empty for an answer."""
    topics = outcome.nearby if isinstance(outcome, Refusal) else ()
    return [NearbyTopic(title=topic.title, url=topic.url) for topic in topics]


class RelatedQuote(BaseModel):
    """What the book says about the subject of a question that it does not answer."""

    quote: str
    title: str
    link: str


def related_quote(outcome: Answer | Refusal) -> RelatedQuote | None:
    related = outcome.related if isinstance(outcome, Refusal) else None
    if related is None:
        return None
    return RelatedQuote(quote=related.quote, title=related.title, link=related.link)


# Sent while the book is searched by keywords only: in this header, and as ``degraded``.
DEGRADED_HEADER = "X-Degraded"
KEYWORD_SEARCH: Literal["keyword-search"] = "keyword-search"


class Degradable(BaseModel):
    """Marks a reply made without vector search; the field is absent in the normal case."""

    degraded: Literal["keyword-search"] | None = Field(None, exclude_if=lambda value: value is None)


def degraded(vectors: VectorState) -> Literal["keyword-search"] | None:
    return None if vectors is VectorState.READY else KEYWORD_SEARCH


class ModelUsage(BaseModel):
    """Language model tokens read and written for an answer."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    calls: int = Field(ge=1)
    cost_usd: float | None = Field(None, ge=0, exclude_if=lambda cost: cost is None)


class Writing(Degradable):
    """Details of a language model's part in an answer: extensions to a contract's own fields,
    each present only if it has a value."""

    # Why the offline writer wrote the answer or the rest of it.
    fallback: str | None = Field(None, exclude_if=lambda why: why is None)
    usage: ModelUsage | None = Field(None, exclude_if=lambda usage: usage is None)
    cached: bool = Field(False, exclude_if=lambda cached: not cached)  # from the answer cache


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
