"""The chat contract: ``POST /chat/run``, ``POST /chat/stream`` and ``/chat/threads``.

A refusal has ``should_answer: false`` and the level "insufficient". A stream sends, in this order:
``session``, ``retrieval``, ``delta``s, ``citation``s, and last either ``done``, with the whole
response, or ``error``.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import (
    UUID4,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from bythebook.answering.pipeline import Event
from bythebook.documents.fields import (
    Moment,
    NearbyTopic,
    PageUrl,
    Selection,
    Share,
    Text,
    Threshold,
    Writing,
    nearby_topics,
    writing_of,
)
from bythebook.documents.fit import citations_of, sources_of
from bythebook.errors import BookError, Stopping
from bythebook.interfaces.conversations import Feedback, ThreadSummary
from bythebook.server.contracts.envelope import LEAST_SCORE
from bythebook.server.contracts.wire_types import Call, action_of, message_of, status_of
from bythebook.server.html import said_html, to_html
from bythebook.types import (
    Answer,
    Citation,
    Confidence,
    Evidence,
    Level,
    Question,
    Refusal,
    RefusalType,
    Reply,
    Role,
    Sentence,
    Thread,
)

_LONGEST_CHUNK = 500  # Source.chunk_text: "max 500 chars for display"
_LIVE_MESSAGES = 50
_LONGEST_SUMMARY = 200


class ChatRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "message": "How do ROS 2 nodes communicate?",
                    "session_id": "550e8400-e29b-41d4-a716-446655440000",
                    "stream": False,
                    "top_k": 5,
                    "similarity_threshold": 0.7,
                }
            ]
        }
    )

    message: Annotated[Text, StringConstraints(max_length=1000)]
    session_id: UUID4 | None = None  # null starts a new thread
    stream: bool = Field(False, strict=True)
    top_k: int = Field(5, ge=1, le=10, strict=True)
    similarity_threshold: Threshold = 0.7
    # Extensions to chat: selected text, which restricts the answer to itself, and the URL of the
    # page being read.
    selected_text: Selection | None = None
    page_url: PageUrl | None = None


class Source(BaseModel):
    chunk_text: str = Field(max_length=_LONGEST_CHUNK)
    similarity_score: Share
    chapter: str
    section: str
    url: str
    chunk_index: int = Field(ge=0)


class MessageCitation(BaseModel):
    """Citation behind a marker of a message, as it was when the message was sent."""

    number: int = Field(ge=1)
    quote: str
    chapter: str
    section: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    score: Share


class ChatResponse(Writing):
    response: str = Field(min_length=1)
    confidence: Share
    sources: list[Source]
    session_id: UUID4
    timestamp: Moment
    confidence_level: Level
    should_answer: bool
    # Extension to chat, present only if false: the thread could not be stored.
    persisted: bool = Field(True, exclude_if=lambda kept: kept)
    # Extension to chat: the citation of each marker in the response; absent on a refusal.
    citations: list[MessageCitation] = Field([], exclude_if=lambda cited: not cited)
    # Extension to chat, present only if not 0: generated sentences removed because the book does
    # not support them.
    withheld: int = Field(0, ge=0, exclude_if=lambda count: not count)

    @model_validator(mode="after")
    def _answers_as_its_confidence_says(self) -> Self:
        if self.should_answer == (self.confidence_level is Level.INSUFFICIENT):
            raise ValueError("should_answer must match confidence_level")
        if self.should_answer and not self.sources:
            raise ValueError("sources must be non-empty if should_answer is true")
        return self


class Message(BaseModel):
    role: Role
    content: str
    timestamp: Moment
    # Only on messages of the assistant.
    confidence: Share | None = Field(None, exclude_if=lambda value: value is None)
    # Extension to chat, only on answers.
    citations: list[MessageCitation] = Field([], exclude_if=lambda value: not value)


class ConversationThread(BaseModel):
    thread_id: UUID4
    messages: list[Message] = Field(max_length=_LIVE_MESSAGES)
    created_at: Moment
    updated_at: Moment
    topic_summary: str | None = Field(None, max_length=_LONGEST_SUMMARY)
    metadata: dict[str, Any] = {}

    @field_validator("messages")
    @classmethod
    def _take_turns_in_time(cls, messages: list[Message]) -> list[Message]:
        for one, next_one in pairwise(messages):
            if one.role is next_one.role:
                raise ValueError('messages must alternate between "user" and "assistant" roles')
            if one.timestamp > next_one.timestamp:
                raise ValueError("messages must be in chronological order")
        return messages


class ListedThread(BaseModel):
    """Thread without its messages."""

    thread_id: UUID4
    created_at: Moment
    updated_at: Moment
    topic_summary: str | None
    message_count: int = Field(ge=0)
    archived: bool


class ThreadList(BaseModel):
    threads: list[ListedThread]
    next_offset: int | None  # start of the next page; null on the last page


class ConfidenceMetrics(BaseModel):
    average_similarity: Share
    min_similarity: Share
    max_similarity: Share
    num_chunks: int = Field(ge=0)
    chunk_diversity: Share
    confidence_level: Level
    should_answer: bool

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if not self.min_similarity <= self.average_similarity <= self.max_similarity:
            raise ValueError("min_similarity <= average_similarity <= max_similarity must hold")
        if self.should_answer == (self.confidence_level is Level.INSUFFICIENT):
            raise ValueError("should_answer must match confidence_level")
        return self


class ChatError(BaseModel):
    error_code: str
    message: str
    suggested_action: str
    request_id: str


_ERROR_CODES = {
    400: "INVALID_REQUEST",
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    413: "PAYLOAD_TOO_LARGE",
    429: "RATE_LIMIT_EXCEEDED",
    503: "SERVICE_UNAVAILABLE",
}


def read(body: ChatRequest, *, request: str | None = None) -> Question:
    """Convert a request to a question.

    Selected text, an envelope feature, gets envelope's floor unless the body sets a threshold.
    Repeating a request that starts a thread starts the same thread.
    """
    begun = uuid.uuid4() if request is None else uuid.UUID(request[:32], version=4)
    by_default = "similarity_threshold" not in body.model_fields_set
    selected = body.selected_text is not None and by_default
    return Question(
        text=body.message,
        thread=str(body.session_id or begun),
        top_k=body.top_k,
        floor=LEAST_SCORE if selected else body.similarity_threshold,
        needs=Level.LOW,
        selection=body.selected_text,
        selection_url=body.page_url if body.selected_text else None,
        page=body.page_url,
    )


def show(reply: Reply, call: Call | None = None) -> ChatResponse:
    outcome, confidence = reply.outcome, reply.evidence.confidence
    return ChatResponse(
        response=outcome.full_text if isinstance(outcome, Answer) else outcome.text,
        confidence=confidence.average if isinstance(outcome, Answer) else 0.0,
        sources=[_source(citation) for citation in sources_of(reply)],
        session_id=uuid.UUID(reply.question.thread) if reply.question.thread else uuid.uuid4(),
        timestamp=reply.answered_at or (call or Call()).at,
        confidence_level=confidence.level,
        should_answer=confidence.should_answer,
        persisted=reply.persisted,
        citations=[_kept(citation) for citation in citations_of(reply)],
        withheld=reply.withheld,
        **dict(writing_of(reply)),
    )


def show_thread(thread: Thread) -> ConversationThread:
    return ConversationThread(
        thread_id=uuid.UUID(thread.id),
        messages=[
            Message(
                role=message.role,
                content=message.content,
                timestamp=message.timestamp,
                confidence=message.confidence if message.role is Role.ASSISTANT else None,
                citations=[_kept(citation) for citation in message.citations],
            )
            for message in thread.messages
        ],
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        topic_summary=thread.topic_summary,
        metadata=dict(thread.metadata),
    )


def _kept(citation: Citation) -> MessageCitation:
    return MessageCitation(
        number=citation.number,
        quote=citation.quote,
        chapter=citation.place.chapter,
        section=citation.place.heading,
        url=citation.url,
        link=citation.link,
        score=citation.score,
    )


def show_threads(threads: Sequence[ThreadSummary], *, limit: int, offset: int) -> ThreadList:
    """Return a page of ``limit`` threads; one more in ``threads`` means there is another page."""
    return ThreadList(
        threads=[
            ListedThread(
                thread_id=uuid.UUID(thread.id),
                created_at=thread.created_at,
                updated_at=thread.updated_at,
                topic_summary=thread.topic_summary,
                message_count=thread.messages,
                archived=thread.archived_at is not None,
            )
            for thread in threads[:limit]
        ],
        next_offset=offset + limit if len(threads) > limit else None,
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
    return status, ChatError(
        error_code=_ERROR_CODES[status],
        message=message_of(error),
        suggested_action=action_of(error),
        request_id=(call or Call()).request_id,
    )


def _source(citation: Citation) -> Source:
    """Show the quoted words: what stands beside them in the chunk was not verified."""
    return Source(
        chunk_text=citation.quote[:_LONGEST_CHUNK],
        similarity_score=citation.score,
        chapter=citation.place.chapter,
        section=citation.place.heading,
        url=citation.url,
        chunk_index=citation.position,
    )


# --- streaming --------------------------------------------------------------------------------


class SessionTold(BaseModel):
    session_id: str
    request_id: str


class CitationTold(Source):
    number: int = Field(ge=1)  # same number as the marker in the response
    link: str  # the url, with a text fragment if a browser can find the quote by one


class DeltaTold(BaseModel):
    text: str  # the response is the concatenation of all deltas
    # Index of its paragraph, from 0, and the sanitized HTML of that paragraph so far: it replaces
    # the HTML sent for the same paragraph before.
    paragraph: int = Field(0, ge=0)
    html: str = ""
    citations: list[CitationTold] = []  # citations that occur here for the first time


class DoneTold(ChatResponse):
    """The response, and what a web page displays with it."""

    html: str  # sanitized; <sup data-cite="1"> for a marker, <mark> around the answer span
    disclaimer: str | None = None
    refusal_type: RefusalType | None = None
    nearby: list[NearbyTopic] = Field(default_factory=list)
    answered_offline: bool = False  # the language model failed, and the fallback writer was used
    query_id: UUID4 | None = None  # id to send feedback about


Told = tuple[str, BaseModel]  # an event's name and payload


async def tell(
    question: Question, journey: AsyncGenerator[Event, None], call: Call
) -> AsyncGenerator[Told, None]:
    """Yield a question's events in the format and order of the contract.

    ``retrieval`` waits for the first supported sentence, or for the reply: only then is it known
    whether the question is answered, on which ``retrieval`` and ``done`` must agree.
    """
    citations: list[Citation] = []
    speech, cited = _Speech(), 0
    confidence: Confidence | None = None  # not sent yet
    yield "session", SessionTold(session_id=question.thread or "", request_id=call.request_id)
    async with aclosing(journey):
        async for event in journey:
            if isinstance(event, Evidence):
                confidence = event.confidence
            elif isinstance(event, Sentence):
                if confidence is not None:
                    yield "retrieval", show_confidence(confidence)
                    confidence = None
                new = [_citation(citation) for citation in citations[cited:]]
                cited = len(citations)
                yield "delta", speech.tell(event, new)
            elif isinstance(event, Citation):
                citations.append(event)
            elif isinstance(event, Reply):
                if confidence is not None:
                    yield "retrieval", show_confidence(event.evidence.confidence)
                if (rest := speech.rest(event.outcome)) is not None:
                    yield "delta", rest
                for citation in citations:
                    yield "citation", _citation(citation)
                yield "done", _done(event, call)


class _Speech:
    """Build the delta event of each sentence, with the paragraph that it continues."""

    def __init__(self) -> None:
        self._paragraph: list[Sentence] = []
        self._number = 0

    def tell(self, sentence: Sentence, new: list[CitationTold]) -> DeltaTold:
        lead = sentence.lead if self._paragraph else ""
        if lead == "\n\n":
            self._paragraph.clear()
            self._number += 1
        self._paragraph.append(sentence)
        return DeltaTold(
            text=lead + sentence.cited,
            paragraph=self._number,
            html=said_html(self._paragraph),
            citations=new,
        )

    def rest(self, outcome: Answer | Refusal) -> DeltaTold | None:
        """Return the delta after the sentences: the disclaimer, or the refusal in their place."""
        if isinstance(outcome, Refusal):
            return DeltaTold(text=outcome.text, html=to_html(outcome.text))
        if not outcome.disclaimer:
            return None
        html = to_html(outcome.disclaimer)
        return DeltaTold(text=f"\n\n{outcome.disclaimer}", paragraph=self._number + 1, html=html)


def _done(reply: Reply, call: Call) -> DoneTold:
    told = DoneTold(
        **dict(show(reply, call)),
        html="",
        nearby=nearby_topics(reply.outcome),
        answered_offline=reply.fallback is not None,
        query_id=uuid.UUID(call.query) if call.query else None,
    )
    return told.model_copy(update=_outcome_told(reply.outcome))


def _outcome_told(outcome: Answer | Refusal) -> dict[str, object]:
    if isinstance(outcome, Refusal):
        return {"html": to_html(outcome.text), "refusal_type": outcome.type}
    html = said_html(outcome.sentences, mark=outcome.mark)
    return {"html": html, "disclaimer": outcome.disclaimer}


# --- feedback -------------------------------------------------------------------------------------


class FeedbackVerdict(StrEnum):
    UP = "up"
    DOWN = "down"


class FeedbackReason(StrEnum):
    WRONG = "wrong"
    INCOMPLETE = "incomplete"
    UNRELATED = "unrelated"
    UNCLEAR = "unclear"
    SOURCE = "source"


class FeedbackRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query_id": "3f2b8a52-6f0e-4f0a-9d3c-0c6f3a1b2c4d",
                    "verdict": "down",
                    "reason": "incomplete",
                    "agreed": False,
                }
            ]
        }
    )

    verdict: FeedbackVerdict
    query_id: UUID4 | None = None  # from the stream's `done` event
    reason: FeedbackReason | None = None
    text: Annotated[Text, StringConstraints(max_length=1000)] | None = None
    agreed: bool = Field(False, strict=True)  # consent that the author may read the text

    @model_validator(mode="after")
    def _has_no_text_without_consent(self) -> Self:
        if self.text is not None and not self.agreed:
            raise ValueError("text is kept only where agreed is true")
        return self


class FeedbackResponse(BaseModel):
    kept: bool


def read_feedback(body: FeedbackRequest, *, at: datetime) -> Feedback:
    """Convert the request; a second verdict on the same question replaces the first."""
    query = str(body.query_id) if body.query_id else None
    return Feedback(
        id=query or str(uuid.uuid4()),
        query=query,
        verdict=body.verdict.value,
        reason=body.reason.value if body.reason else None,
        text=body.text,
        given_at=at,
    )


def tell_failure(error: BookError, *, call: Call) -> Told:
    _, body = fail(error, call)
    code = "SHUTTING_DOWN" if isinstance(error, Stopping) else body.error_code
    return "error", body.model_copy(update={"error_code": code})


def _citation(citation: Citation) -> CitationTold:
    source = _source(citation)
    return CitationTold(**source.model_dump(), number=citation.number, link=citation.link)
