"""Data model "RAG Chatbot Backend": an answer and its sources; limits are counted in words.

The length of a word is limited only by the body size (``access.body_bytes``). A refusal is reported
in the answer's text, without sources.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bythebook.contracts.errors import Call, sentence_of, status_of
from bythebook.contracts.fields import (
    AnyText,
    Degradable,
    Entity,
    Extension,
    SentMoment,
    Share,
    Text,
    Vector,
    check_dimension,
    degraded,
    example,
    model_of,
    now,
    omitted,
)
from bythebook.contracts.fit import by_place, found, named, shortened
from bythebook.errors import BookError, StoreFailed
from bythebook.refusals import Refusal, RefusalType
from bythebook.types import Hit, Question, Reply

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.ingestion.indexer import IngestResult as CoreIngestResult

TOP_K = 5
LEAST_SCORE = 0.5  # not specified by plain; same as ask's DEFAULT_RELEVANCE_THRESHOLD
MAX_QUERY_WORDS = 500
MAX_SELECTED_WORDS = 200
_REFUSALS = {Refusal(kind).text for kind in RefusalType}

_Digest = Annotated[str, StringConstraints(min_length=64, max_length=64)]
_Name = Annotated[str, StringConstraints(min_length=1)]


def _at_most(words: int, what: str) -> AfterValidator:
    def check(text: str) -> str:
        count = len(text.split())
        if count > words:
            raise ValueError(f"{what} exceeds {words} words (has {count})")
        return text

    check.__doc__ = f"At most {words} words."
    return AfterValidator(check)


_QueryText = Annotated[
    Text, _at_most(MAX_QUERY_WORDS, "Query"), Field(description="at most 500 words")
]
_SelectedText = Annotated[AnyText, _at_most(MAX_SELECTED_WORDS, "Selected text")]
_GUIDES = "at most 200 words; guides the search"


class Chunk(Entity):
    """A passage as it is stored."""

    id: _Digest
    embedding: Vector
    text: str = Field(min_length=1, max_length=10_000)
    chapter: _Name
    section: _Name
    filename: _Name
    chunk_index: int = Field(ge=0)
    content_hash: _Digest
    model: Extension[str] = omitted("text-embedding-004")
    dimension: Extension[int] = omitted(768)

    @model_validator(mode="after")
    def _has_the_dimension_of_its_model(self) -> Self:
        """Embedding has the dimension of its model."""
        check_dimension(self.embedding, self.model, self.dimension)
        return self


class Query(Entity):
    """A reader's question, and what is selected while it is asked."""

    query_text: _QueryText
    selected_text: _SelectedText | None = Field(None, description=_GUIDES)
    timestamp: SentMoment = Field(default_factory=now)


class SearchResult(Entity):
    """A chunk that was found, with its rank."""

    chunk: Chunk
    score: Share
    rank: int = Field(ge=1, le=TOP_K)


class Source(Entity):
    """The section of the book that an answer cites."""

    chapter: _Name
    section: _Name
    filename: _Name
    score: Share


class QueryResponse(Degradable):
    """The answer to a request, or the sentence of a refusal."""

    answer: str = Field(min_length=1)
    sources: list[Source] = Field(max_length=TOP_K)

    @model_validator(mode="after")
    def _an_answer_has_sources(self) -> Self:
        """An answer has at least one source."""
        if not self.sources and self.answer not in _REFUSALS:
            raise ValueError("an answer must have 1 to 5 sources; only a refusal has none")
        return self


class AgentResponse(QueryResponse):
    """The answer to a query, its model and how long it took."""

    model_used: _Name
    latency: int = Field(ge=0)  # milliseconds


class QueryRequest(Entity):
    """A query, as it is sent over HTTP."""

    model_config = example(
        query="How do ROS 2 nodes exchange messages?",
        selected_text="Nodes in ROS 2 communicate via topics",
    )

    query: _QueryText
    selected_text: _SelectedText | None = Field(None, description=_GUIDES)


class IngestResult(Entity):
    """What an ingest did; the output of ``bythebook ingest --json``."""

    files_processed: int = Field(ge=0)
    chunks_created: int = Field(ge=0)
    errors: list[str] = Field([])
    warnings: Extension[list[str]] = Field([])
    exit_code: int
    embedded: Extension[int] = 0
    unchanged: Extension[int] = 0
    changed: Extension[int] = 0
    removed: Extension[int] = 0
    coverage: Extension[float | None] = None  # None: the book has no words
    seconds: Extension[float] = 0.0
    not_read: Extension[list[dict[str, Any]]] = Field([])
    not_read_total: Extension[int] = 0
    images: Extension[int] = 0
    left_out: Extension[list[dict[str, Any]]] = Field([])

    @model_validator(mode="after")
    def _fails_exactly_with_errors(self) -> Self:
        """Exit_code is not 0 with errors; it is 0 without errors."""
        if self.errors and self.exit_code == 0:
            raise ValueError("Exit code must be non-zero when errors exist")
        if not self.errors and self.exit_code != 0:
            raise ValueError("Exit code must be 0 when no errors exist")
        return self

    @model_validator(mode="after")
    def _has_chunks_of_files_alone(self) -> Self:
        """Without a file there is no chunk."""
        if self.chunks_created and not self.files_processed:
            raise ValueError("chunks_created must be 0 when no file was processed")
        return self


class PlainError(Entity):
    detail: str


# --- conversion -----------------------------------------------------------------------------------


def read(body: QueryRequest | Query) -> Question:
    return Question(
        text=body.query if isinstance(body, QueryRequest) else body.query_text,
        selection=(body.selected_text or "").strip() or None,
        selection_only=False,
        top_k=TOP_K,
        min_score=LEAST_SCORE,
        min_evidence=LEAST_SCORE,
    )


def show(reply: Reply) -> QueryResponse:
    return QueryResponse(**_fields(reply))


def show_response(reply: Reply) -> AgentResponse:
    return AgentResponse(
        **_fields(reply),
        model_used=reply.writer or "extractive",
        latency=round(reply.timings.total_ms),
    )


def _fields(reply: Reply) -> dict[str, Any]:
    reply = shortened(by_place(reply), sources=TOP_K)
    return {
        "answer": reply.outcome.text,
        "sources": [
            Source(
                chapter=named(citation.place.chapter, citation.place.title),
                section=named(citation.place.heading),
                filename=named(citation.place.file, citation.place.page_url),
                score=citation.score,
            )
            for citation in reply.citations
        ],
        "degraded": degraded(reply.vectors),
    }


def show_ingest(result: CoreIngestResult, *, most_listed: int) -> IngestResult:
    told = asdict(result) | {"exit_code": result.exit_code, "seconds": round(result.seconds, 3)}
    told["coverage"] = None if result.coverage is None else round(result.coverage, 6)
    told["not_read"] = told["not_read"][:most_listed]
    return IngestResult(**told)


def fail(error: BookError, _: Call | None = None) -> tuple[int, PlainError]:
    return status_of(error), PlainError(detail=sentence_of(error))


# --- with an open book ----------------------------------------------------------------------------


async def search(book: Book, query: Query) -> list[SearchResult]:
    """Return the chunks of a search, best first, each with its vector."""
    hits = await found(book, read(query))
    async with book.reading() as context:
        model = model_of(context.index.embedder)
    return [
        SearchResult(chunk=_chunk(hit, model), score=hit.score, rank=rank)
        for rank, hit in enumerate(hits, 1)
    ]


async def answer(book: Book, query: Query | QueryRequest) -> AgentResponse:
    """Ask the book; without an answer, there are no sources."""
    return show_response(await book.reply(read(query)))


def _chunk(hit: Hit, model: str) -> Chunk:
    passage, place = hit.passage, hit.passage.place
    if hit.vector is None:
        raise StoreFailed("The vectors of the book are not available.")
    is_ours = len(passage.id) == 64
    return Chunk(
        id=passage.id if is_ours else hashlib.sha256(passage.id.encode()).hexdigest(),
        embedding=hit.vector.tolist(),
        text=passage.text[:10_000],
        chapter=named(place.chapter, place.title),
        section=named(place.heading),
        filename=named(place.file, place.page_url),
        chunk_index=passage.position,
        content_hash=passage.content_hash,
        model=model,
        dimension=len(hit.vector),
    )
