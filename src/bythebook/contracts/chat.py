"""Data model "RAG Agent API": conversations, with the confidence of each answer."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import pairwise
from math import isclose
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    UUID4,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    field_validator,
    model_validator,
)

from bythebook.answering.gate import DECISIVE, diversity_of, level_of
from bythebook.contracts.envelope import LEAST_SCORE
from bythebook.contracts.errors import Call, action_of, is_ours, message_of, status_of
from bythebook.contracts.fields import (
    Entity,
    Extension,
    MessageCitation,
    Moment,
    PageUrl,
    Selection,
    Share,
    Text,
    ThreadMetadata,
    Threshold,
    Vector,
    Writing,
    check_dimension,
    cited_quote,
    example,
    model_of,
    now,
    omitted,
    with_web_address,
    writing_of,
)
from bythebook.contracts.fit import embedded, found, sources_of
from bythebook.contracts.plain import LEAST_SCORE as BOOK_THRESHOLD
from bythebook.errors import BookError
from bythebook.interfaces.conversations import Thread, no_such_thread
from bythebook.types import Answer, Citation, Confidence, Level, Question, Reply, Role

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.types import Vectors

MAX_MESSAGE_LENGTH = 1000
MAX_TOP_K = 10
DEFAULT_TOP_K = 5
DEFAULT_SIMILARITY_THRESHOLD = 0.7
SUFFICIENT_SCORE, SUFFICIENT_CHUNKS = 0.75, 3
MAX_MESSAGES = 50
MAX_SUMMARY_LENGTH = 200
_LEAST_AVERAGE = {Level.HIGH: 0.85, Level.MEDIUM: 0.75}  # of a level; without a decisive chunk
_LONGEST_CHUNK = 500  # chunk_text: "max 500 chars for display"


class ChatRequest(Entity):
    """A reader's message in a conversation."""

    model_config = example(
        message="How do ROS 2 nodes communicate?",
        session_id="550e8400-e29b-41d4-a716-446655440000",
        stream=False,
        top_k=5,
        similarity_threshold=0.7,
    )

    message: Annotated[Text, StringConstraints(max_length=MAX_MESSAGE_LENGTH)]
    session_id: UUID4 | None = Field(None, description="the conversation; null starts a new one")
    stream: bool = Field(False, strict=True)
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOP_K, strict=True)
    similarity_threshold: Threshold = DEFAULT_SIMILARITY_THRESHOLD
    selected_text: Extension[Selection | None] = Field(
        None, description="answer only from this text"
    )
    page_url: Extension[PageUrl | None] = Field(
        None, description="the page being read, preferred among equally good passages"
    )
    whole_evidence: Extension[bool] = Field(
        False,
        strict=True,
        description="use the book's own threshold, and also weaker passages, for a fuller answer",
    )
    states: Extension[Literal["query", "ask"] | None] = Field(
        None,
        description="of a stream: send the states of a question, as this data model names them",
    )
    metadata: Extension[ThreadMetadata | None] = Field(
        None, description="merged into the conversation's metadata; at most 4 KB of JSON"
    )


class Source(Entity):
    """A chunk that an answer cites."""

    chunk_text: str = Field(max_length=_LONGEST_CHUNK)
    similarity_score: Share
    chapter: str
    section: str
    url: str
    chunk_index: int = Field(ge=0)


class ChatResponse(Writing):
    """The answer to a message, or a refusal, with its confidence."""

    response: str = Field(min_length=1)
    confidence: Share
    sources: list[Source]
    session_id: UUID4
    timestamp: Moment
    confidence_level: Level
    should_answer: bool
    # Present only if false: the thread could not be stored.
    persisted: Extension[bool] = omitted(True)
    # The quotes behind the markers of the response; absent on a refusal.
    citations: Extension[list[MessageCitation]] = omitted([])
    # Present only if not 0: generated sentences removed because the book does not support them.
    withheld: Extension[int] = omitted(0, ge=0)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Should_answer is false exactly for "insufficient"; an answer has sources."""
        _check_level(self.confidence_level, should_answer=self.should_answer)
        if self.should_answer and not self.sources:
            raise ValueError("sources must be non-empty if should_answer is true")
        return self


def _check_level(level: Level, *, should_answer: bool) -> None:
    if should_answer == (level is Level.INSUFFICIENT):
        raise ValueError("should_answer must match confidence_level")


class Message(Entity):
    """A message of the reader or of the book."""

    role: Role
    content: str
    timestamp: Moment
    # Only on messages of the assistant.
    confidence: Share | None = omitted(None)
    citations: Extension[list[MessageCitation]] = omitted([])

    @model_validator(mode="after")
    def _is_confident_as_an_answer(self) -> Self:
        """Only messages of the assistant have a confidence."""
        if self.confidence is not None and self.role is Role.USER:
            raise ValueError("only messages of the assistant have a confidence")
        return self


class ConversationThread(Entity):
    """A conversation with its last messages."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    thread_id: UUID4 = Field(default_factory=uuid.uuid4)
    messages: list[Message] = Field([], max_length=MAX_MESSAGES)
    created_at: Moment = Field(default_factory=now)
    updated_at: Moment = Field(default_factory=now)
    topic_summary: str | None = Field(None, max_length=MAX_SUMMARY_LENGTH)
    metadata: dict[str, Any] = Field({})

    @field_validator("messages")
    @classmethod
    def _alternate_in_order(cls, messages: list[Message]) -> list[Message]:
        """Roles alternate; messages are in chronological order."""
        for message, next_message in pairwise(messages):
            if message.role is next_message.role:
                raise ValueError('messages must alternate between "user" and "assistant" roles')
            if message.timestamp > next_message.timestamp:
                raise ValueError("messages must be in chronological order")
        return messages


class ChunkMetadata(Entity):
    """The place of a chunk in the book."""

    chapter: str
    section: str
    url: str
    chunk_index: int = Field(ge=0)
    content_hash: str  # SHA-256 of the text


class RetrievalResult(Entity):
    """The chunks of a search, best first, each text once."""

    chunks: list[str] = Field(max_length=MAX_TOP_K)
    scores: list[Share]
    metadata: list[ChunkMetadata]
    average_score: Share
    has_sufficient_context: bool
    query_embedding: Vector
    model: Extension[str] = omitted("text-embedding-3-small")
    dimension: Extension[int] = omitted(1536)
    _vectors: list[Vectors] = PrivateAttr(default_factory=list)  # of the chunks

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Chunks, scores and metadata have the same length; average_score is the mean of scores;
        has_sufficient_context needs an average of 0.75 and is given with 3 chunks of it;
        query_embedding has the dimension of its model."""
        check_dimension(self.query_embedding, self.model, self.dimension)
        if not len(self.chunks) == len(self.scores) == len(self.metadata):
            raise ValueError("chunks, scores and metadata must have the same length")
        if not isclose(self.average_score, _mean(self.scores), abs_tol=1e-6):
            raise ValueError("average_score must be the mean of scores")
        is_sure, count = self.average_score >= SUFFICIENT_SCORE, len(self.chunks)
        may_differ = is_sure and count < SUFFICIENT_CHUNKS  # top_k caps the count
        if self.has_sufficient_context != is_sure and not may_differ:
            raise ValueError(f"sufficient context is an average_score >= {SUFFICIENT_SCORE}")
        return self


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores) if scores else 0.0


class ConfidenceMetrics(Entity):
    """How well the retrieved chunks answer a question."""

    average_similarity: Share
    min_similarity: Share
    max_similarity: Share
    num_chunks: int = Field(ge=0)
    chunk_diversity: Share
    confidence_level: Level
    should_answer: bool

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """The average is between minimum and maximum; should_answer is false exactly for
        "insufficient"; confidence_level agrees with the average."""
        if not self.min_similarity <= self.average_similarity <= self.max_similarity:
            raise ValueError("min_similarity <= average_similarity <= max_similarity must hold")
        _check_level(self.confidence_level, should_answer=self.should_answer)
        least = _LEAST_AVERAGE.get(self.confidence_level, 0.0)
        is_decisive = self.confidence_level is Level.MEDIUM and self.max_similarity >= DECISIVE
        if self.average_similarity < least and not is_decisive:
            raise ValueError(f"this confidence_level needs an average_similarity of {least}")
        return self


class ChatError(Entity):
    error_code: str
    message: str
    suggested_action: str
    request_id: str


_ERROR_CODES = {
    400: "INVALID_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    413: "PAYLOAD_TOO_LARGE",
    429: "RATE_LIMIT_EXCEEDED",
    503: "SERVICE_UNAVAILABLE",
}


# --- conversion -----------------------------------------------------------------------------------


def read(body: ChatRequest, *, request: str | None = None) -> Question:
    """Convert a request to a question.

    Selected text, an envelope feature, gets envelope's floor unless the body sets a threshold.
    Repeating a request that starts a thread starts the same thread.
    """
    new_thread = uuid.uuid4() if request is None else uuid.UUID(request[:32], version=4)
    is_default = "similarity_threshold" not in body.model_fields_set
    floor = LEAST_SCORE if body.selected_text and is_default else body.similarity_threshold
    if body.whole_evidence:
        floor = BOOK_THRESHOLD
    return Question(
        text=body.message,
        thread=str(body.session_id or new_thread),
        top_k=body.top_k,
        min_score=floor,
        min_evidence=0.0 if body.whole_evidence else floor,
        min_confidence=Level.INSUFFICIENT if body.whole_evidence else Level.LOW,
        selection=body.selected_text,
        selection_url=body.page_url if body.selected_text else None,
        current_page=body.page_url,
        thread_metadata=body.metadata or {},
    )


def show(reply: Reply, call: Call | None = None) -> ChatResponse:
    outcome, confidence = reply.outcome, reply.evidence.confidence
    return ChatResponse(
        response=outcome.by_source.full_text if isinstance(outcome, Answer) else outcome.text,
        confidence=confidence.average if isinstance(outcome, Answer) else 0.0,
        sources=[show_source(citation) for citation in sources_of(reply)],
        session_id=uuid.UUID(reply.question.thread) if reply.question.thread else uuid.uuid4(),
        timestamp=reply.answered_at or (call or Call()).at,
        confidence_level=confidence.level,
        should_answer=confidence.should_answer,
        persisted=reply.persisted,
        citations=[cited_quote(citation) for citation in reply.citations],
        withheld=reply.withheld,
        **dict(writing_of(reply)),
    )


def show_source(citation: Citation) -> Source:
    """Show the quoted words; the rest of the chunk was not verified."""
    return Source(
        chunk_text=citation.quote[:_LONGEST_CHUNK],
        similarity_score=citation.score,
        chapter=citation.place.chapter,
        section=citation.place.heading,
        url=citation.url,
        chunk_index=citation.position,
    )


def show_thread(thread: Thread, reader: str = "") -> ConversationThread:
    return ConversationThread(
        thread_id=uuid.UUID(thread.id),
        messages=[
            Message(
                role=message.role,
                content=message.content,
                timestamp=message.timestamp,
                confidence=message.confidence if message.role is Role.ASSISTANT else None,
                citations=[
                    cited_quote(with_web_address(citation, reader))
                    for citation in message.citations
                ],
            )
            for message in thread.messages
        ],
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        topic_summary=thread.topic_summary,
        metadata=dict(thread.metadata),
    )


def show_confidence(confidence: Confidence) -> ConfidenceMetrics:
    return ConfidenceMetrics(
        average_similarity=confidence.average,
        min_similarity=confidence.minimum,
        max_similarity=confidence.maximum,
        num_chunks=confidence.count,
        chunk_diversity=confidence.diversity,
        confidence_level=confidence.level,
        should_answer=confidence.should_answer,
    )


def fail(error: BookError, call: Call | None = None) -> tuple[int, ChatError]:
    status = status_of(error)
    usual = _ERROR_CODES[503 if is_ours(error) else 400]
    return status, ChatError(
        error_code=_ERROR_CODES.get(status, usual),
        message=message_of(error),
        suggested_action=action_of(error),
        request_id=(call or Call()).request_id,
    )


# --- with an open book ----------------------------------------------------------------------------


async def search_textbook(
    book: Book,
    query: str,
    top_k: int = DEFAULT_TOP_K,
    similarity_threshold: float = DEFAULT_SIMILARITY_THRESHOLD,
) -> RetrievalResult:
    """Search the book; of chunks with the same text, the best one is returned."""
    request = ChatRequest(message=query, top_k=top_k, similarity_threshold=similarity_threshold)
    hits = await found(book, read(request))
    hits = tuple({hit.passage.content_hash: hit for hit in reversed(hits)}.values())[::-1]
    vector, embedder = await embedded(book, request.message)
    scores = [hit.score for hit in hits]
    result = RetrievalResult(
        chunks=[hit.passage.text for hit in hits],
        scores=scores,
        metadata=[
            ChunkMetadata(
                chapter=hit.passage.place.chapter,
                section=hit.passage.place.heading,
                url=hit.passage.place.url,
                chunk_index=hit.passage.position,
                content_hash=hit.passage.content_hash,
            )
            for hit in hits
        ],
        average_score=_mean(scores),
        has_sufficient_context=(
            _mean(scores) >= SUFFICIENT_SCORE and len(hits) >= min(SUFFICIENT_CHUNKS, top_k)
        ),
        query_embedding=vector,
        model=model_of(embedder),
        dimension=embedder.dimension,
    )
    result._vectors = [hit.vector for hit in hits if hit.vector is not None]
    return result


def confidence(result: RetrievalResult, *, top_k: int = DEFAULT_TOP_K) -> ConfidenceMetrics:
    """Measure a search. The diversity is 0 if the vectors of the chunks are not known."""
    scores = sorted(result.scores)
    if not scores:
        return show_confidence(Confidence())
    average = min(max(_mean(scores), scores[0]), scores[-1])
    level = level_of(average, scores[-1], len(scores), top_k)
    diversity = diversity_of(result._vectors)
    measured = Confidence(average, scores[0], scores[-1], len(scores), diversity, level)
    return show_confidence(measured)


async def answer(book: Book, request: ChatRequest) -> ChatResponse:
    """Answer a message of a conversation, which is stored with the book."""
    return show(await book.reply(read(request)))


async def thread(book: Book, thread_id: str, *, owner: str | None = None) -> ConversationThread:
    """Return a conversation with its last 50 messages."""
    found_thread = await book.threads.read(thread_id, owner=owner)
    if found_thread is None:
        raise no_such_thread()
    return show_thread(found_thread)
