"""Data model "Agent Construction with Retrieval": an answer with citations, or a search.

The command line and the Python API return these documents, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from bythebook.answering.pipeline import Event, State
from bythebook.contracts.errors import Call, is_ours, sentence_of, status_of
from bythebook.contracts.fields import (
    Degradable,
    Entity,
    Extension,
    Milliseconds,
    NearbyTopic,
    PageUrl,
    RelatedQuote,
    Selection,
    Share,
    Text,
    Threshold,
    WebAddress,
    Writing,
    degraded,
    example,
    nearby_topics,
    related_quote,
    web_address,
    writing_of,
)
from bythebook.contracts.fit import by_place, formatted, number_places, with_failure
from bythebook.errors import BookError, WriterFailed
from bythebook.refusals import Refusal
from bythebook.types import Answer, Citation, Hit, Level, Question, Reply, VectorState

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.retrieval.search import Findings

DEFAULT_TOP_K = 5
DEFAULT_RELEVANCE_THRESHOLD = 0.5
MAX_TOP_K = 20
MAX_QUERY_LENGTH = 2000
COLLECTION_NAME = "physical-ai-textbook"
READER = "http://localhost:8000/read/"  # where pages without a web address are served

AgentState = State  # RECEIVED, VALIDATING, RETRIEVING, GENERATING, COMPLETE, ERROR


class AgentQuery(Entity):
    """A reader's question."""

    model_config = example(
        text="How do ROS 2 nodes exchange messages?", top_k=5, relevance_threshold=0.5
    )

    text: Annotated[Text, StringConstraints(max_length=MAX_QUERY_LENGTH)]
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOP_K, strict=True)
    relevance_threshold: Threshold = DEFAULT_RELEVANCE_THRESHOLD
    selected_text: Extension[Selection | None] = Field(
        None, description="answer only from this text; a search is only guided by it"
    )
    page_url: Extension[PageUrl | None] = Field(
        None, description="the page that contains the selected text"
    )


class SearchResult(Entity):
    """A passage that was found."""

    score: Share
    content: str = Field(min_length=1)
    source_url: WebAddress
    section_title: str
    chunk_id: str = Field(min_length=1)
    chapter: str
    page_title: str
    position: int
    content_hash: str
    filename: Extension[str] = ""
    kind: Extension[str] = "text"  # text, exercise, bibliography …


class ResultSet(Degradable):
    """The passages of a search, best first."""

    query: str
    results: list[SearchResult]
    total_count: int
    query_time_ms: Milliseconds
    search_time_ms: Milliseconds
    total_time_ms: Milliseconds
    vectors: Extension[VectorState] = VectorState.READY

    @model_validator(mode="after")
    def _is_counted(self) -> Self:
        """Total_count is the number of results."""
        if self.total_count != len(self.results):
            raise ValueError("total_count must be the number of results")
        return self


class SourceCitation(Entity):
    """The section of the book that an answer cites."""

    chapter: str
    section: str
    url: str
    relevance_score: Share


class NumberedCitation(Entity):
    number: int = Field(ge=1)
    source: int = Field(ge=1)  # of the marker: ``sources[source - 1]``
    quote: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    filename: str
    section: str
    score: Share


class CitedSentence(Entity):
    text: str
    citations: list[int]
    lead: str  # separator before the sentence: a space, a line break or an empty line


class MarkedSpan(Entity):
    """Short span that is the answer itself: a date, a number, a name."""

    text: str
    sentence: int  # index from 0
    start: int
    end: int


class AgentResponse(Writing):
    """The answer to a query, or a refusal."""

    answer: str = Field(min_length=1)
    sources: list[SourceCitation]
    has_relevant_context: bool
    retrieval_time_ms: Milliseconds
    generation_time_ms: Milliseconds
    total_time_ms: Milliseconds
    refusal_type: Extension[str | None] = None
    citations: Extension[list[NumberedCitation]] = Field([])
    sentences: Extension[list[CitedSentence]] = Field([])
    span: Extension[MarkedSpan | None] = None  # set if a few words of a sentence are the answer
    # Generated sentences that were removed because the book does not support them:
    withheld: Extension[int] = 0
    confidence: Extension[Share] = 0.0  # the answerability of an answer
    answerability: Extension[Share] = 0.0  # probability that the book's passages answer; always set
    confidence_level: Extension[Level] = Level.INSUFFICIENT
    disclaimer: Extension[str | None] = None
    nearby: Extension[list[NearbyTopic]] = Field([])
    related: Extension[RelatedQuote | None] = None  # of a refusal: what the book does say
    vectors: Extension[VectorState] = VectorState.READY  # pending: searched by keywords only

    @model_validator(mode="after")
    def _an_answer_has_sources(self) -> Self:
        """Sources may be empty only without relevant context."""
        if self.has_relevant_context and not self.sources:
            raise ValueError("sources may be empty only if has_relevant_context is False")
        return self


class AgentErrorType(StrEnum):
    VALIDATION = "validation"
    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    NO_CONTEXT = "no_context"  # never sent: a refusal is an answer


class AgentError(Entity):
    """The failure of a query, in words for its reader."""

    error_type: AgentErrorType
    message: str
    details: str | None = None  # for logs only; never sent


# --- conversion -----------------------------------------------------------------------------------


def read(body: AgentQuery) -> Question:
    return Question(
        text=body.text,
        selection=body.selected_text,
        selection_url=body.page_url,
        top_k=body.top_k,
        min_score=body.relevance_threshold,
        min_evidence=body.relevance_threshold,
        current_page=body.page_url,
    )


def read_search(body: AgentQuery) -> Question:
    """Convert a search request: selected text guides the search but does not restrict it."""
    return replace(read(body), selection_url=None, selection_only=False)


def show(reply: Reply) -> AgentResponse:
    reply, listed = number_places(reply), by_place(reply)
    outcome, confidence = reply.outcome, reply.evidence.confidence
    answer = outcome if isinstance(outcome, Answer) else None
    return AgentResponse(
        answer=listed.outcome.text,
        sources=[_source(citation) for citation in listed.citations],
        has_relevant_context=answer is not None,
        retrieval_time_ms=reply.timings.retrieval_ms,
        generation_time_ms=reply.timings.generation_ms,
        total_time_ms=reply.timings.total_ms,
        refusal_type=outcome.type.value if isinstance(outcome, Refusal) else None,
        citations=[_citation(citation) for citation in reply.citations],
        sentences=[
            CitedSentence(text=s.text, citations=list(s.citations), lead=s.lead)
            for s in (answer.sentences if answer else ())
        ],
        span=_span(answer) if answer else None,
        withheld=reply.withheld,
        confidence=reply.evidence.answerability if answer else 0.0,
        answerability=reply.evidence.answerability,
        confidence_level=confidence.level,
        disclaimer=answer.disclaimer if answer else None,
        nearby=nearby_topics(outcome),
        related=related_quote(outcome),
        vectors=reply.vectors,
        **dict(writing_of(reply)),
    )


def show_results(question: Question, findings: Findings, *, reader: str) -> ResultSet:
    """Return the hits that score at or above the question's minimum score.

    ``reader`` is the URL under which the server shows pages that are not on the web.
    """
    findings = findings.at_least(question.min_score)
    return ResultSet(
        query=question.text,
        results=[_result(hit, reader) for hit in sorted(findings.hits, key=lambda hit: -hit.score)],
        total_count=len(findings.hits),
        query_time_ms=findings.query_ms,
        search_time_ms=findings.search_ms,
        total_time_ms=findings.query_ms + findings.search_ms,
        vectors=findings.vectors,
        degraded=degraded(findings.vectors),
    )


def _span(answer: Answer) -> MarkedSpan | None:
    mark = answer.mark
    if mark is None:
        return None
    text = answer.span or ""
    return MarkedSpan(text=text, sentence=mark.sentence, start=mark.start, end=mark.end)


def _source(citation: Citation) -> SourceCitation:
    return SourceCitation(
        chapter=citation.place.chapter,
        section=citation.place.heading,
        url=citation.url,
        relevance_score=citation.score,
    )


def _citation(citation: Citation) -> NumberedCitation:
    return NumberedCitation(
        number=citation.number,
        source=citation.source,
        quote=citation.quote,
        url=citation.url,
        link=citation.link,
        filename=citation.place.file,
        section=citation.place.heading,
        score=citation.score,
    )


def _result(hit: Hit, reader: str) -> SearchResult:
    passage, place = hit.passage, hit.passage.place
    return SearchResult(
        score=hit.score,
        content=passage.text,
        source_url=web_address(place.url, reader),
        section_title=place.heading,
        chunk_id=passage.id,
        chapter=place.chapter,
        page_title=place.title,
        position=passage.position,
        # The ask contract specifies MD5: a checksum for clients; nothing here relies on it.
        content_hash=hashlib.md5(passage.text.encode(), usedforsecurity=False).hexdigest(),
        filename=place.file,
        kind=passage.text_kind,
    )


def fail(error: BookError, _: Call | None = None) -> tuple[int, AgentError]:
    return status_of(error), AgentError(error_type=_error_type(error), message=sentence_of(error))


def _error_type(error: BookError) -> AgentErrorType:
    if not is_ours(error):
        return AgentErrorType.VALIDATION
    is_written = isinstance(error, WriterFailed)
    return AgentErrorType.GENERATION if is_written else AgentErrorType.RETRIEVAL


# --- with an open book ----------------------------------------------------------------------------


async def semantic_search(
    book: Book,
    query: str | AgentQuery,
    top_k: int = DEFAULT_TOP_K,
    *,
    reader: str = READER,
) -> ResultSet:
    """Search the book; results below the threshold of the query are left out."""
    if isinstance(query, str):
        query = AgentQuery(text=query, top_k=top_k)
    question = read_search(query)
    return show_results(question, await book.search(question), reader=reader)


def format_context(result_set: ResultSet, *, tokens: int = 4000) -> str:
    """Return the results as numbered passages for a language model, the best ones that fit."""
    texts = (
        ((result.page_title, result.section_title, result.source_url), result.content)
        for result in result_set.results
    )
    return "\n\n".join(formatted(texts, tokens=tokens))


async def follow(
    book: Book, query: AgentQuery
) -> AsyncGenerator[AgentState | AgentResponse | AgentError, None]:
    """Yield each state of a query as it is reached; the response or the error comes last."""
    async for event in with_failure(book.ask(read(query))):
        for state in states_of(event):
            yield state
        if isinstance(event, Reply):
            yield show(event)
        elif isinstance(event, BookError):
            yield fail(event)[1]


def states_of(event: Event | BookError) -> Iterator[AgentState]:
    """Yield the state that an event of an answer shows to be reached, if any."""
    if isinstance(event, AgentState):
        yield event
    elif isinstance(event, BookError):
        yield AgentState.ERROR


async def answer(book: Book, query: AgentQuery) -> AgentResponse | AgentError:
    """Ask the book; a refusal is a response, a failure an error."""
    *_, result = [event async for event in follow(book, query)]
    assert isinstance(result, AgentResponse | AgentError)
    return result
