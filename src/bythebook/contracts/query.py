"""Data model "Book RAG Agent": one question and one response, which may be a refusal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from bythebook import errors
from bythebook.answering.pipeline import Event, State
from bythebook.contracts.errors import Call, by_class, may_pass, sentence_of, status_of
from bythebook.contracts.fields import (
    Degradable,
    Entity,
    SentMoment,
    Share,
    Text,
    Vector,
    check_dimension,
    degraded,
    example,
    model_of,
    now,
)
from bythebook.contracts.fit import (
    by_place,
    embedded,
    formatted,
    found,
    shortened,
    with_failure,
)
from bythebook.errors import BookError
from bythebook.language.tokens import estimate_tokens
from bythebook.refusals import Refusal
from bythebook.types import Evidence, Hit, Question, Reply

if TYPE_CHECKING:
    from bythebook.book import Book

TOP_K = 5
SIMILARITY_THRESHOLD = 0.75
MAX_CONTEXT_TOKENS = 4000
MAX_QUERY_LENGTH = 2000


class Query(Entity):
    """A reader's question."""

    model_config = example(text="How do ROS 2 nodes exchange messages?")

    text: Annotated[Text, StringConstraints(max_length=MAX_QUERY_LENGTH)]
    timestamp: SentMoment = Field(default_factory=now)


class Embedding(Entity):
    """The vector of a text, by which passages are searched."""

    vector: Vector
    model: str = Field(min_length=1)
    dimension: int = Field(ge=1)

    @model_validator(mode="after")
    def _has_the_dimension_of_its_model(self) -> Self:
        """Vector has the dimension of its model."""
        check_dimension(self.vector, self.model, self.dimension)
        return self


class RetrievedChunk(Entity):
    """A passage that was found."""

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    score: Share
    chapter: str | None = None
    section: str | None = None
    module: str | None = None
    keywords: list[str] = Field([])


class Context(Entity):
    """The passages that an answer is written from."""

    chunks: list[RetrievedChunk] = Field(max_length=TOP_K)
    total_tokens: int = Field(ge=0, le=MAX_CONTEXT_TOKENS)
    formatted_text: str

    @model_validator(mode="after")
    def _is_relevant_and_ordered(self) -> Self:
        """Chunks have a score of at least 0.75; they are ordered by it, the best first."""
        scores = [chunk.score for chunk in self.chunks]
        if any(score < SIMILARITY_THRESHOLD for score in scores):
            raise ValueError(f"chunks must have a score of at least {SIMILARITY_THRESHOLD}")
        if any(score < following for score, following in pairwise(scores)):
            raise ValueError("chunks must be ordered by score, the best first")
        return self


class Source(Entity):
    """The place of the book that an answer cites."""

    chapter: str
    section: str
    module: str


class Response(Degradable):
    """The answer to a query, or a refusal."""

    answer: str = Field(min_length=1)
    sources: list[Source]
    is_refusal: bool = False
    refusal_reason: str | None = None

    @model_validator(mode="after")
    def _a_refusal_says_why(self) -> Self:
        """A refusal has a refusal_reason."""
        if self.is_refusal and not self.refusal_reason:
            raise ValueError("a refusal must have a refusal_reason")
        return self


class QueryErrorType(StrEnum):
    """Error states, and the errors of a request before it has a state."""

    INVALID_QUERY = "InvalidQuery"
    QUERY_TOO_LARGE = "QueryTooLarge"
    NOT_ALLOWED = "NotAllowed"
    NOT_FOUND = "NotFound"
    RATE_LIMITED = "RateLimited"
    EMBEDDING_FAILED = "EmbeddingFailed"
    SEARCH_FAILED = "SearchFailed"
    RESPONDING_FAILED = "RespondingFailed"


class QueryError(Entity):
    """The failure of a query, in words for its reader."""

    message: str
    error_type: QueryErrorType
    recoverable: bool  # the same query may succeed later


class ProcessingState(StrEnum):
    """States of a query. Its failures are the states EmbeddingFailed and SearchFailed."""

    RECEIVED = "Received"
    EMBEDDING = "Embedding"
    SEARCHING = "Searching"
    RETRIEVED = "Retrieved"
    NO_RESULTS = "NoResults"
    CONTEXT_TOO_LARGE = "ContextTooLarge"
    RESPONDING = "Responding"
    REFUSAL = "Refusal"
    COMPLETE = "Complete"
    EMBEDDING_FAILED = "EmbeddingFailed"
    SEARCH_FAILED = "SearchFailed"
    RESPONDING_FAILED = "RespondingFailed"


# --- conversion -----------------------------------------------------------------------------------

_ERROR_TYPES: dict[type[BookError], QueryErrorType] = {
    errors.TooLarge: QueryErrorType.QUERY_TOO_LARGE,
    errors.InvalidInput: QueryErrorType.INVALID_QUERY,
    errors.NotAllowed: QueryErrorType.NOT_ALLOWED,
    errors.NotFound: QueryErrorType.NOT_FOUND,
    errors.RateLimited: QueryErrorType.RATE_LIMITED,
    errors.EmbedderFailed: QueryErrorType.EMBEDDING_FAILED,
    errors.WriterFailed: QueryErrorType.RESPONDING_FAILED,
}


_FAILED = {
    QueryErrorType.EMBEDDING_FAILED: ProcessingState.EMBEDDING_FAILED,
    QueryErrorType.SEARCH_FAILED: ProcessingState.SEARCH_FAILED,
    QueryErrorType.RESPONDING_FAILED: ProcessingState.RESPONDING_FAILED,
}


def read(body: Query) -> Question:
    return Question(
        text=body.text,
        top_k=TOP_K,
        min_score=SIMILARITY_THRESHOLD,
        min_evidence=SIMILARITY_THRESHOLD,
    )


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
            for citation in reply.citations
        ],
        is_refusal=refusal is not None,
        refusal_reason=refusal.type.value if refusal else None,
        degraded=degraded(reply.vectors),
    )


def fail(error: BookError, _: Call | None = None) -> tuple[int, QueryError]:
    return status_of(error), QueryError(
        message=sentence_of(error),
        error_type=by_class(error, _ERROR_TYPES, QueryErrorType.SEARCH_FAILED),
        recoverable=may_pass(error),
    )


def _chunk(hit: Hit) -> RetrievedChunk:
    passage, place = hit.passage, hit.passage.place
    return RetrievedChunk(
        id=passage.id,
        text=passage.text,
        score=hit.score,
        chapter=place.chapter or None,
        section=place.heading or None,
        module=place.module or None,
        keywords=list(passage.metadata.keywords),
    )


# --- with an open book ----------------------------------------------------------------------------


async def embed(book: Book, text: str) -> Embedding:
    """Return the vector of a question, as the book's embedding model makes it."""
    vector, embedder = await embedded(book, text)
    return Embedding(vector=vector, model=model_of(embedder), dimension=embedder.dimension)


async def retrieve(book: Book, query: Query) -> Context:
    """Return the relevant passages, best first; those beyond the token budget are left out."""
    chunks = [_chunk(hit) for hit in await found(book, read(query))]
    texts = formatted(
        (((chunk.module, chunk.chapter, chunk.section), chunk.text) for chunk in chunks),
        tokens=MAX_CONTEXT_TOKENS,
    )
    text = "\n\n".join(texts)
    return Context(
        chunks=chunks[: len(texts)], total_tokens=estimate_tokens(text), formatted_text=text
    )


async def follow(
    book: Book, query: Query
) -> AsyncGenerator[ProcessingState | Response | QueryError, None]:
    """Yield each state of a query as it is reached; the response or the error comes last."""
    async for event in with_failure(book.ask(read(query))):
        for state in states_of(event):
            yield state
        if isinstance(event, Reply):
            yield show(event)
        elif isinstance(event, BookError):
            yield fail(event)[1]


def states_of(event: Event | BookError) -> Iterator[ProcessingState]:
    """Yield the states that an event of an answer shows to be reached.

    The search embeds the query by itself: Embedding and Searching are reported together.
    """
    match event:
        case State.RECEIVED:
            yield ProcessingState.RECEIVED
        case State.RETRIEVING:
            yield ProcessingState.EMBEDDING
            yield ProcessingState.SEARCHING
        case Evidence():
            yield ProcessingState.RETRIEVED if event.hits else ProcessingState.NO_RESULTS
            if _is_cut(event):
                yield ProcessingState.CONTEXT_TOO_LARGE
        case State.GENERATING:
            yield ProcessingState.RESPONDING
        case Reply():
            if not event.answered:
                yield ProcessingState.REFUSAL
            yield ProcessingState.COMPLETE
        case BookError():
            _, error = fail(event)
            if error.error_type in _FAILED:
                yield _FAILED[error.error_type]


def _is_cut(evidence: Evidence) -> bool:
    """Return whether a relevant passage was left out for the token budget."""
    used = {hit.passage.id for hit in evidence.hits}
    relevant = {hit.passage.id for hit in evidence.considered if hit.score >= SIMILARITY_THRESHOLD}
    return len(used) < TOP_K and not relevant <= used
