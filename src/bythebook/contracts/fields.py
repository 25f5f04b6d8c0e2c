"""Field types and models that several data models share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    PlainSerializer,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from bythebook.interfaces.conversations import METADATA_BYTES
from bythebook.language.text import well_formed
from bythebook.refusals import Refusal
from bythebook.text.selections import SELECTION
from bythebook.types import Answer, Citation, MarkKind, Reply, Sentence, VectorState

if TYPE_CHECKING:
    from bythebook.interfaces.models import Embedder

T = TypeVar("T")

EXTENSION = "extension"
Extension = Annotated[T, EXTENSION]  # marks a field that the data model does not have


def _title(entity: type) -> str:
    package, _, contract = entity.__module__.rpartition(".")
    prefix = contract.capitalize()
    has_own_name = package != __package__ or prefix in ("Ask", "Fields")
    is_complete = has_own_name or entity.__name__.startswith(prefix)
    return entity.__name__ if is_complete else prefix + entity.__name__


class Entity(BaseModel):
    """Entity of a data model. In the OpenAPI document, its name begins with the contract's."""

    model_config = ConfigDict(model_title_generator=_title)


def omitted(default: Any, **limits: Any) -> Any:
    """Return a field that is not sent while it has its default value."""
    return Field(default, exclude_if=lambda value: value == default, **limits)


def example(**fields: Any) -> ConfigDict:
    """Return the configuration of a request model with an example for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


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
Moment = Annotated[AwareDatetime, AfterValidator(lambda when: when.astimezone(UTC)), _AS_UTC]
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


def _check_metadata(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except ValueError:  # half of a surrogate pair, or a number that is not finite
        raise ValueError("metadata is not valid JSON") from None
    if size > METADATA_BYTES or "\\u0000" in text:
        raise ValueError(f"metadata is JSON of at most {METADATA_BYTES} bytes, without NUL")
    return metadata


ThreadMetadata = Annotated[dict[str, JsonValue], AfterValidator(_check_metadata)]


def is_web_address(url: str) -> bool:
    try:
        return url.startswith(("http://", "https://")) and bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _check_web_address(url: str) -> str:
    """A valid URL of the web."""
    if not is_web_address(url):
        raise PydanticCustomError("web_address", "is not an address of the web")
    return url


WebAddress = Annotated[str, AfterValidator(_check_web_address)]


def web_address(url: str, reader: str) -> str:
    """Return a URL of the web: a page without one is shown under the URL of the ``reader``."""
    return url if is_web_address(url) else reader + url.lstrip("/")


def with_web_address(citation: Citation, reader: str) -> Citation:
    """Return the citation with URLs of the web; a selection keeps what the client sent."""
    if citation.passage_id == SELECTION:
        return citation
    url, link = (web_address(each, reader) for each in (citation.url, citation.link))
    return replace(citation, url=url, link=link)


def with_web_links(sentence: Sentence, reader: str) -> Sentence:
    """Return the sentence with links to pages that are not on the web under the ``reader``."""
    if not any(mark.kind is MarkKind.LINK for mark in sentence.marks or ()):
        return sentence
    marks = (
        mark._replace(target=web_address(mark.target, reader))
        if mark.kind is MarkKind.LINK and not mark.target.startswith("mailto:")
        else mark
        for mark in sentence.marks or ()
    )
    return replace(sentence, marks=tuple(marks))


def with_web_addresses(reply: Reply, reader: str) -> Reply:
    outcome = reply.outcome
    if isinstance(outcome, Answer):
        citations = tuple(with_web_address(citation, reader) for citation in outcome.citations)
        sentences = tuple(with_web_links(sentence, reader) for sentence in outcome.sentences)
        return replace(reply, outcome=replace(outcome, citations=citations, sentences=sentences))
    related = outcome.related
    if related is not None:
        related = replace(related, link=web_address(related.link, reader))
    nearby = (replace(topic, url=web_address(topic.url, reader)) for topic in outcome.nearby)
    return replace(reply, outcome=replace(outcome, nearby=tuple(nearby), related=related))


def citation_fields(citation: Citation) -> dict[str, Any]:
    """Return the fields that numbered citations of several contracts have in common."""
    return {
        "number": citation.number,
        "quote": citation.quote,
        "chapter": citation.place.chapter,
        "section": citation.place.heading,
        "url": citation.url,
        "link": citation.link,
    }


class MessageCitation(Entity):
    """Quote in a message, as it was when the message was sent."""

    number: int = Field(ge=1)
    source: int = Field(ge=1)  # of the marker: ``sources[source - 1]``
    quote: str
    chapter: str
    section: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    score: Share


def cited_quote(citation: Citation) -> MessageCitation:
    return MessageCitation(
        **citation_fields(citation), source=citation.source, score=citation.score
    )


class NearbyTopic(Entity):
    title: str
    url: str


def nearby_topics(outcome: Answer | Refusal) -> list[NearbyTopic]:
    """Return the topics near the question that the book does cover; empty for an answer."""
    topics = outcome.nearby if isinstance(outcome, Refusal) else ()
    return [NearbyTopic(title=topic.title, url=topic.url) for topic in topics]


class RelatedQuote(Entity):
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


class Degradable(Entity):
    """Marks a reply made without vector search; the field is absent in the normal case."""

    degraded: Extension[Literal["keyword-search"] | None] = omitted(None)


def degraded(vectors: VectorState) -> Literal["keyword-search"] | None:
    return None if vectors is VectorState.READY else KEYWORD_SEARCH


class ModelUsage(Entity):
    """Language model tokens read and written for an answer."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    calls: int = Field(ge=1)
    cost_usd: float | None = omitted(None, ge=0)


class Writing(Degradable):
    """Details of a language model's part in an answer: extensions to a contract's own fields,
    each present only if it has a value."""

    # Why the offline writer wrote the answer or the rest of it.
    fallback: Extension[str | None] = omitted(None)
    usage: Extension[ModelUsage | None] = omitted(None)
    cached: Extension[bool] = omitted(False)  # from the answer cache


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


# --- vectors --------------------------------------------------------------------------------------

Vector = Annotated[list[FiniteFloat], Field(min_length=1)]
# Of the embedding models that the data models name; the vectors of any other have its own.
DIMENSIONS = {
    "embed-english-v3.0": 1024,
    "embed-multilingual-v3.0": 1024,
    "text-embedding-004": 768,
    "text-embedding-3-small": 1536,
    "text-embedding-ada-002": 1536,
}


def check_dimension(vector: Sequence[float], model: str, dimension: int) -> None:
    known = DIMENSIONS.get(model, dimension)
    if not len(vector) == dimension == known:
        raise ValueError(f"a vector of {model} must have {known} dimensions (has {len(vector)})")


def model_of(embedder: Embedder) -> str:
    """Return the name of the embedding model, without its provider."""
    return embedder.name.partition(":")[2] or embedder.name
