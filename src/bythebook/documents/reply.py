"""The JSON documents of a reply and of search results.

They are the output of ``--json`` on the command line, the result of ``semantic_search`` in Python
and the responses of the ask contract.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, Field, model_validator

from bythebook.documents.fields import (
    Degradable,
    Milliseconds,
    NearbyTopic,
    RelatedQuote,
    Share,
    Writing,
    degraded,
    nearby_topics,
    related_quote,
    web_address,
    writing_of,
)
from bythebook.documents.fit import by_place, citations_of, number_places
from bythebook.refusals import Refusal
from bythebook.types import Answer, Citation, Hit, Level, Question, Reply, VectorState

if TYPE_CHECKING:
    from bythebook.retrieval.search import Findings


class SearchResult(BaseModel):
    score: Share
    content: str = Field(min_length=1)
    source_url: str
    section_title: str
    chunk_id: str = Field(min_length=1)
    chapter: str
    page_title: str
    position: int
    content_hash: str
    filename: str
    kind: str  # extension to ask: text, exercise, bibliography …


class ResultSet(Degradable):
    query: str
    results: list[SearchResult]
    total_count: int
    query_time_ms: Milliseconds
    search_time_ms: Milliseconds
    total_time_ms: Milliseconds
    # Extension to ask:
    vectors: VectorState


class SourceCitation(BaseModel):
    chapter: str
    section: str
    url: str
    relevance_score: Share


class NumberedCitation(BaseModel):
    number: int = Field(ge=1)
    source: int = Field(ge=1)  # of the marker: ``sources[source - 1]``
    quote: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    filename: str
    section: str
    score: Share


class CitedSentence(BaseModel):
    text: str
    citations: list[int]
    lead: str  # separator before the sentence: a space, a line break or an empty line


class MarkedSpan(BaseModel):
    """Short span that is the answer itself: a date, a number, a name."""

    text: str
    sentence: int  # index from 0
    start: int
    end: int


class AgentResponse(Writing):
    answer: str = Field(min_length=1)
    sources: list[SourceCitation]
    has_relevant_context: bool
    retrieval_time_ms: Milliseconds
    generation_time_ms: Milliseconds
    total_time_ms: Milliseconds
    # Extensions to ask:
    refusal_type: str | None
    citations: list[NumberedCitation]
    sentences: list[CitedSentence]
    span: MarkedSpan | None  # set if a few words of a sentence are the answer
    withheld: int  # generated sentences removed because the book does not support them
    confidence: Share
    confidence_level: Level
    disclaimer: str | None
    nearby: list[NearbyTopic]
    related: RelatedQuote | None  # of a refusal: what the book does say about the subject
    vectors: VectorState  # pending: the book was searched by keywords only

    @model_validator(mode="after")
    def _an_answer_has_sources(self) -> Self:
        if self.has_relevant_context and not self.sources:
            raise ValueError("sources may be empty only if has_relevant_context is False")
        return self


def show(reply: Reply) -> AgentResponse:
    reply, listed = number_places(reply), by_place(reply)
    outcome, confidence = reply.outcome, reply.evidence.confidence
    answer = outcome if isinstance(outcome, Answer) else None
    return AgentResponse(
        answer=listed.outcome.text,
        sources=[_source(citation) for citation in citations_of(listed)],
        has_relevant_context=answer is not None,
        retrieval_time_ms=reply.timings.retrieval_ms,
        generation_time_ms=reply.timings.generation_ms,
        total_time_ms=reply.timings.total_ms,
        refusal_type=outcome.type.value if isinstance(outcome, Refusal) else None,
        citations=[_citation(citation) for citation in citations_of(reply)],
        sentences=[
            CitedSentence(text=s.text, citations=list(s.citations), lead=s.lead)
            for s in (answer.sentences if answer else ())
        ],
        span=_span(answer) if answer else None,
        withheld=reply.withheld,
        confidence=confidence.average if answer else 0.0,
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
        results=[_result(hit, reader) for hit in findings.hits],
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
