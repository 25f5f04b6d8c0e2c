"""Data model "Answer Generation Agent": every outcome in one envelope with a status."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import (
    UUID4,
    Field,
    HttpUrl,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bythebook.answering.routing import WorkflowMode, mode_of
from bythebook.contracts.errors import (
    Call,
    by_class,
    is_ours,
    message_of,
    retry_after,
    sentence_of,
    status_of,
)
from bythebook.contracts.fields import (
    Degradable,
    Entity,
    Extension,
    NearbyTopic,
    PageUrl,
    Selection,
    Share,
    Text,
    Vector,
    check_dimension,
    degraded,
    example,
    is_web_address,
    model_of,
    nearby_topics,
    omitted,
)
from bythebook.contracts.fit import embedded, found, named, shortened, with_failure
from bythebook.errors import BookError, EmbedderFailed, RateLimited, ServiceError, WriterFailed
from bythebook.refusals import Refusal, RefusalType
from bythebook.text.selections import SELECTION
from bythebook.types import Answer, Evidence, Hit, Question, Reply
from bythebook.types import Citation as CitedQuote

if TYPE_CHECKING:
    from bythebook.book import Book

LEAST_SCORE = 0.4  # of the best chunk; below it, RefusalType.LOW_RELEVANCE
_LONGEST_ANSWER = 2000
_LONGEST_MESSAGE = 200
_LONGEST_REFERENCE = 500
_LONGEST_CHUNK = 10_000


class QueryRequest(Entity):
    """A reader's question, to the book or to a selection of it."""

    model_config = example(
        query="How does ROS 2 work?",
        selected_text=None,
        top_k=5,
        session_id="550e8400-e29b-41d4-a716-446655440000",
    )

    query: Annotated[Text, StringConstraints(max_length=500)]
    selected_text: Selection | None = Field(None, description="answer only from this text")
    top_k: int = Field(5, ge=1, le=20, strict=True)
    session_id: UUID4 | None = Field(None, description="for the rate limit and the query log")
    page_url: Extension[PageUrl | None] = Field(
        None, description="the page that contains the selected text"
    )

    @field_validator("query", mode="before")
    @classmethod
    def _is_not_empty(cls, value: object) -> object:
        """The query is not empty after trimming."""
        if isinstance(value, str) and not value.strip():
            raise ValueError("Query cannot be empty")
        return value


class PlannedWorkflow(Entity):
    """How a request is answered: from the book, or from the selection alone."""

    mode: WorkflowMode
    query: str
    top_k: int
    selected_text: str | None

    @model_validator(mode="after")
    def _has_the_selection_of_its_mode(self) -> Self:
        """The mode selected_text_only needs selected_text; standard_rag has none."""
        is_selection = self.mode is WorkflowMode.SELECTED_TEXT_ONLY
        if is_selection and self.selected_text is None:
            raise ValueError("selected_text required for selected_text_only mode")
        if not is_selection and self.selected_text is not None:
            raise ValueError("selected_text must be null for standard_rag mode")
        return self


class QueryEmbedding(Entity):
    """The vector of a question, by which chunks are searched."""

    vector: Vector
    model: str
    input_type: Literal["search_query"]
    dimension: Extension[int] = omitted(1024)

    @model_validator(mode="after")
    def _is_a_vector_of_its_model(self) -> Self:
        """Vector has the dimension of its model; all its values are in range -1 to 1."""
        check_dimension(self.vector, self.model, self.dimension)
        if not all(-1.0 <= value <= 1.0 for value in self.vector):
            raise ValueError("All vector values must be in range [-1.0, 1.0]")
        return self


class RetrievedChunk(Entity):
    """A passage that was found, or the selected text."""

    chunk_id: str = Field(min_length=1)
    text: str = Field(min_length=1, max_length=_LONGEST_CHUNK)
    chapter: str | None = None
    section: str | None = None
    source_url: HttpUrl | None = None
    similarity_score: Share


class Citation(Entity):
    """The source of a claim of the answer."""

    chapter: str | None = None
    section: str | None = None
    source_url: HttpUrl | None = None
    referenced_text: str | None = Field(None, max_length=_LONGEST_REFERENCE)

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        """At least one of chapter, section and source_url is present."""
        if not (self.chapter or self.section or self.source_url):
            raise ValueError("Citation must have at least one of: chapter, section, source_url")
        return self


class GroundedAnswer(Entity):
    """An answer with its citations."""

    text: str = Field(min_length=1, max_length=_LONGEST_ANSWER)
    citations: list[Citation] = Field(min_length=1)
    mode: WorkflowMode


REFUSAL_MESSAGES = {kind: Refusal(kind).text for kind in RefusalType}


class RefusalMessage(Entity):
    """Why there is no answer: one of the standard messages."""

    refusal_type: RefusalType
    reason: str
    nearby: Extension[list[NearbyTopic]] = Field([])

    @field_validator("reason")
    @classmethod
    def _is_the_standard_one(cls, value: str, info: ValidationInfo) -> str:
        """Reason is the standard message of its type."""
        kind = info.data.get("refusal_type")
        if kind is not None and value != REFUSAL_MESSAGES[kind]:
            raise ValueError(f'Refusal message must be: "{REFUSAL_MESSAGES[kind]}"')
        return value


class ErrorCode(StrEnum):
    QDRANT_TIMEOUT = "QDRANT_TIMEOUT"
    COHERE_FAILURE = "COHERE_FAILURE"
    OPENROUTER_TIMEOUT = "OPENROUTER_TIMEOUT"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"


class ErrorDetail(Entity):
    """What failed, in words for the reader."""

    code: ErrorCode
    message: str = Field(min_length=1, max_length=_LONGEST_MESSAGE)
    details: str | None = Field(None, max_length=500)  # for logs only; never sent
    retry_after: int | None = Field(None, ge=0)


class ResponseStatus(StrEnum):
    SUCCESS = "success"
    REFUSED = "refused"
    ERROR = "error"


class ResponseMetadata(Entity):
    """Figures of a response, and the ids of its request."""

    chunks_retrieved: int = Field(ge=0)
    processing_time_ms: int = Field(ge=0)
    session_id: uuid.UUID | None
    request_id: uuid.UUID


class QueryResponse(Degradable):
    """Exactly one of answer, refusal and error."""

    status: ResponseStatus
    answer: GroundedAnswer | None = None
    refusal: RefusalMessage | None = None
    error: ErrorDetail | None = None
    metadata: ResponseMetadata

    @model_validator(mode="after")
    def _has_the_field_of_its_status(self) -> Self:
        """The field of the status is present; answer, refusal and error exclude each other."""
        fields = dict(zip(ResponseStatus, ("answer", "refusal", "error"), strict=True))
        present = [name for name in fields.values() if getattr(self, name) is not None]
        if fields[self.status] not in present:
            raise ValueError(f"{fields[self.status]} required when status={self.status}")
        if len(present) != 1:
            raise ValueError("Exactly one of answer, refusal, error must be present")
        return self


# --- conversion -----------------------------------------------------------------------------------


def plan(request: QueryRequest) -> PlannedWorkflow:
    """Choose the workflow: with a selected text, the book is not searched."""
    selected = request.selected_text is not None
    return PlannedWorkflow(
        mode=WorkflowMode.SELECTED_TEXT_ONLY if selected else WorkflowMode.STANDARD_RAG,
        query=request.query,
        top_k=request.top_k,
        selected_text=request.selected_text,
    )


def read(body: QueryRequest) -> Question:
    workflow = plan(body)
    return Question(
        text=workflow.query,
        selection=workflow.selected_text,
        selection_url=body.page_url,
        top_k=workflow.top_k,
        min_score=LEAST_SCORE,
        current_page=body.page_url,
    )


def show(reply: Reply, call: Call | None = None) -> QueryResponse:
    reply = shortened(reply, chars=_LONGEST_ANSWER)
    outcome = reply.outcome
    answer = _answer(outcome, reply.question) if isinstance(outcome, Answer) else None
    chunks, milliseconds = len(reply.evidence.considered), reply.timings.total_ms
    return QueryResponse(
        status=ResponseStatus.SUCCESS if answer else ResponseStatus.REFUSED,
        answer=answer,
        refusal=_refusal(outcome) if isinstance(outcome, Refusal) else None,
        metadata=_metadata(call or Call(), chunks=chunks, milliseconds=milliseconds),
        degraded=degraded(reply.vectors),
    )


def _answer(answer: Answer, question: Question) -> GroundedAnswer:
    return GroundedAnswer(
        text=answer.text,
        citations=[_citation(citation) for citation in answer.citations],
        mode=mode_of(question),
    )


def _refusal(refusal: Refusal) -> RefusalMessage:
    return RefusalMessage(
        refusal_type=refusal.type, reason=refusal.text, nearby=nearby_topics(refusal)
    )


def _citation(citation: CitedQuote) -> Citation:
    return Citation(
        chapter=citation.place.chapter or None,
        section=named(citation.place.heading),
        source_url=HttpUrl(citation.url) if is_web_address(citation.url) else None,
        referenced_text=citation.quote[:_LONGEST_REFERENCE],
    )


def _metadata(call: Call, *, chunks: int, milliseconds: float) -> ResponseMetadata:
    return ResponseMetadata(
        chunks_retrieved=chunks,
        processing_time_ms=round(milliseconds),
        session_id=call.session,
        request_id=_uuid(call.request_id),
    )


def _uuid(request_id: str) -> uuid.UUID:
    """Return the request id as a UUID, which envelope requires; same string, same UUID."""
    try:
        return uuid.UUID(request_id)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, request_id)


def fail(error: BookError, call: Call | None = None) -> tuple[int, QueryResponse]:
    call = call or Call()
    is_timeout = isinstance(error, ServiceError) and error.timed_out
    message = sentence_of(error)
    if len(message) > _LONGEST_MESSAGE:
        message = message_of(error)[:_LONGEST_MESSAGE]
    ours = ErrorCode.QDRANT_TIMEOUT
    code = by_class(error, _CODES, ours if is_ours(error) else ErrorCode.VALIDATION_FAILED)
    detail = ErrorDetail(code=code, message=message, retry_after=retry_after(error))
    return 504 if is_timeout else status_of(error), QueryResponse(
        status=ResponseStatus.ERROR,
        error=detail,
        metadata=_metadata(call, chunks=0, milliseconds=call.elapsed_ms),
    )


_CODES: dict[type[BookError], ErrorCode] = {
    RateLimited: ErrorCode.RATE_LIMIT_EXCEEDED,
    EmbedderFailed: ErrorCode.COHERE_FAILURE,
    WriterFailed: ErrorCode.OPENROUTER_TIMEOUT,
}


def _chunk(hit: Hit) -> RetrievedChunk:
    passage, place = hit.passage, hit.passage.place
    if passage.id == SELECTION:
        return _selected(passage.text)
    return RetrievedChunk(
        chunk_id=passage.id,
        text=passage.text[:_LONGEST_CHUNK],
        chapter=place.chapter or None,
        section=place.heading or None,
        source_url=HttpUrl(place.url) if is_web_address(place.url) else None,
        similarity_score=hit.score,
    )


def _selected(text: str) -> RetrievedChunk:
    return RetrievedChunk(chunk_id="selected_text", text=text, similarity_score=1.0)


# --- with an open book ----------------------------------------------------------------------------


async def embed(book: Book, text: str) -> QueryEmbedding:
    """Return the vector of a question, as the book's embedding model makes it."""
    vector, embedder = await embedded(book, text)
    return QueryEmbedding(
        vector=vector,
        model=model_of(embedder),
        input_type="search_query",
        dimension=embedder.dimension,
    )


async def retrieve(book: Book, workflow: PlannedWorkflow) -> list[RetrievedChunk]:
    """Return the chunks of a search, best first, or the selected text as the only one."""
    if workflow.selected_text is not None:
        return [_selected(workflow.selected_text)]
    question = Question(workflow.query, top_k=workflow.top_k, min_score=0.0)
    return [_chunk(hit) for hit in await found(book, question)]


async def follow(
    book: Book, request: QueryRequest
) -> AsyncGenerator[
    PlannedWorkflow
    | list[RetrievedChunk]
    | GroundedAnswer
    | RefusalMessage
    | ErrorDetail
    | QueryResponse,
    None,
]:
    """Yield what a request becomes on its way; the envelope comes last."""
    yield plan(request)
    call = Call(session=request.session_id)
    async for event in with_failure(book.ask(read(request))):
        if isinstance(event, Evidence):
            yield [_chunk(hit) for hit in event.considered]
        elif isinstance(event, Reply | BookError):
            response = show(event, call) if isinstance(event, Reply) else fail(event, call)[1]
            result = response.answer or response.refusal or response.error
            assert result is not None
            yield result
            yield response


async def answer(book: Book, request: QueryRequest) -> QueryResponse:
    """Ask the book; a refusal and a failure are responses, too."""
    *_, response = [event async for event in follow(book, request)]
    assert isinstance(response, QueryResponse)
    return response
