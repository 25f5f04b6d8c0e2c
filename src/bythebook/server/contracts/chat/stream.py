"""Streams of the chat contract: the events of an answer, in the contract's format and order."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from enum import StrEnum

from pydantic import UUID4, BaseModel, Field

from bythebook.answering.extractive import ExtractiveWriter
from bythebook.answering.pipeline import Event
from bythebook.contracts import ask, query
from bythebook.contracts.chat import (
    ChatError,
    ChatResponse,
    ConfidenceMetrics,
    Source,
    fail,
    show,
    show_confidence,
    show_source,
)
from bythebook.contracts.errors import Call
from bythebook.contracts.fields import (
    NearbyTopic,
    RelatedQuote,
    nearby_topics,
    omitted,
    related_quote,
)
from bythebook.contracts.fit import with_failure
from bythebook.errors import BookError, Stopping
from bythebook.refusals import Refusal, RefusalType
from bythebook.server.contracts.base import StreamEvent
from bythebook.server.html import said_html, to_html
from bythebook.server.sse import Events, NamedEvent
from bythebook.types import Answer, Citation, Confidence, Evidence, Question, Reply, Sentence


class ChatSessionEvent(BaseModel):
    session_id: str
    request_id: str


class ChatStateEvent(BaseModel):
    state: str  # of the data model query or ask, as the request chooses


class ChatCitationEvent(Source):
    number: int = Field(ge=1)  # same number as in the HTML
    source: int = Field(ge=1)  # same number as the marker in the response
    link: str  # the url, with a text fragment if a browser can find the quote by one


class ChatDeltaEvent(BaseModel):
    text: str  # the response is the concatenation of all deltas
    # Index of its paragraph, from 0, and the sanitized HTML of that paragraph so far: it replaces
    # the HTML sent for the same paragraph before.
    paragraph: int = Field(0, ge=0)
    html: str = ""
    citations: list[ChatCitationEvent] = []  # citations that occur here for the first time


class ChatDoneEvent(ChatResponse):
    """The response, and what a web page displays with it."""

    html: str  # sanitized; <sup data-cite="1"> for a marker, <mark> around the answer span
    disclaimer: str | None = None
    refusal_type: RefusalType | None = None
    nearby: list[NearbyTopic] = Field(default_factory=list)
    related: RelatedQuote | None = None  # of a refusal: what the book does say about the subject
    small_talk: bool = False  # it was no question: show `remark` instead of the refusal
    remark: str | None = None  # a friendly sentence, or one that introduces `related`
    # Questions about other sections of the cited pages, which the book answers; after an answer.
    next_questions: list[str] = Field(default_factory=list)
    answered_offline: bool = False  # the language model failed, and the fallback writer was used
    # Set if the sentences are a language model's, checked against the book; else quoted from it.
    written_by_model: bool = omitted(False)
    query_id: UUID4 | None = None  # id to send feedback about


EVENTS = (
    StreamEvent("session", "once, first", ChatSessionEvent),
    StreamEvent("state", "any number, if the request asks for `states`", ChatStateEvent),
    StreamEvent("retrieval", "once, before the first delta", ConfidenceMetrics),
    StreamEvent("delta", "any number", ChatDeltaEvent),
    StreamEvent("citation", "any number, after the last delta", ChatCitationEvent),
    StreamEvent("done", "once, last, unless the answer failed", ChatDoneEvent),
    StreamEvent("error", "once, last, instead of done", ChatError),
)

StatesOf = Callable[[Event | BookError], Iterator[StrEnum]]
STATES: dict[str, StatesOf] = {"query": query.states_of, "ask": ask.states_of}
SuggestNext = Callable[[Reply], Awaitable[list[str]]]


async def suggest_nothing(_: Reply) -> list[str]:
    return []


async def stream_events(
    question: Question,
    events: AsyncGenerator[Event, None],
    call: Call,
    suggest_next: SuggestNext = suggest_nothing,
    states_of: StatesOf | None = None,
) -> Events:
    """Yield a question's events in the format and order of the contract.

    ``retrieval`` waits for the first supported sentence, or for the reply: only then is it known
    whether the question is answered, on which ``retrieval`` and ``done`` must agree.
    """
    citations: list[Citation] = []
    deltas, sent_citations = _Deltas(), 0
    confidence: Confidence | None = None  # not sent yet
    yield "session", ChatSessionEvent(session_id=question.thread or "", request_id=call.request_id)
    async with aclosing(with_failure(events)) as told:
        async for event in told:
            for state in states_of(event) if states_of else ():
                yield "state", ChatStateEvent(state=state)
            if isinstance(event, BookError):
                raise event
            if isinstance(event, Evidence):
                confidence = event.confidence
            elif isinstance(event, Sentence):
                if confidence is not None:
                    yield "retrieval", show_confidence(confidence)
                    confidence = None
                new = [_citation(citation) for citation in citations[sent_citations:]]
                sent_citations = len(citations)
                sources = {each.number: each.source for each in citations}
                yield "delta", deltas.of_sentence(event, event.by_source(sources).cited, new)
            elif isinstance(event, Citation):
                citations.append(event)
            elif isinstance(event, Reply):
                if confidence is not None:
                    yield "retrieval", show_confidence(event.evidence.confidence)
                if (last := deltas.last(event.outcome)) is not None:
                    yield "delta", last
                for citation in citations:
                    yield "citation", _citation(citation)
                yield "done", _done(event, call, await suggest_next(event))


def stream_failure(error: BookError, *, call: Call) -> NamedEvent:
    _, body = fail(error, call)
    code = "SHUTTING_DOWN" if isinstance(error, Stopping) else body.error_code
    return "error", body.model_copy(update={"error_code": code})


class _Deltas:
    """Build the delta event of each sentence, with the paragraph that it continues."""

    def __init__(self) -> None:
        self._paragraph: list[Sentence] = []
        self._number = 0

    def of_sentence(
        self, sentence: Sentence, text: str, new: list[ChatCitationEvent]
    ) -> ChatDeltaEvent:
        lead = sentence.lead if self._paragraph else ""
        if lead == "\n\n":
            self._paragraph.clear()
            self._number += 1
        self._paragraph.append(sentence)
        return ChatDeltaEvent(
            text=lead + text,
            paragraph=self._number,
            html=said_html(self._paragraph),
            citations=new,
        )

    def last(self, outcome: Answer | Refusal) -> ChatDeltaEvent | None:
        """Return the delta after the sentences: the disclaimer, or the refusal in their place."""
        if isinstance(outcome, Refusal):
            return ChatDeltaEvent(text=outcome.text, html=to_html(outcome.text))
        if not outcome.disclaimer:
            return None
        html, text = to_html(outcome.disclaimer), f"\n\n{outcome.disclaimer}"
        return ChatDeltaEvent(text=text, paragraph=self._number + 1, html=html)


def _citation(citation: Citation) -> ChatCitationEvent:
    source = show_source(citation)
    numbers = {"number": citation.number, "source": citation.source}
    return ChatCitationEvent(**dict(source), **numbers, link=citation.link)


def _done(reply: Reply, call: Call, next_questions: list[str]) -> ChatDoneEvent:
    outcome = reply.outcome
    if isinstance(outcome, Refusal):
        html, disclaimer, refusal_type = to_html(outcome.text), None, outcome.type
    else:
        html, disclaimer = said_html(outcome.sentences, mark=outcome.mark), outcome.disclaimer
        refusal_type = None
    return ChatDoneEvent(
        **dict(show(reply, call)),
        html=html,
        disclaimer=disclaimer,
        refusal_type=refusal_type,
        nearby=nearby_topics(outcome),
        related=related_quote(outcome),
        small_talk=isinstance(outcome, Refusal) and outcome.is_small_talk,
        remark=outcome.remark if isinstance(outcome, Refusal) else None,
        next_questions=next_questions,
        answered_offline=reply.fallback is not None,
        written_by_model=isinstance(outcome, Answer) and outcome.writer != ExtractiveWriter.name,
        query_id=uuid.UUID(call.query) if call.query else None,
    )
