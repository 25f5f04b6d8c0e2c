"""S1, the agent's contract: ``POST /ask``, ``POST /search``, and the JSON of the command line.

A refusal is an answer with ``has_relevant_context: false``; an error is an ``AgentError``.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from bythebook.errors import BookError, InvalidInput, WriterFailed
from bythebook.model import Answer, Hit, Level, Question, Refusal, Reply, Topic, VectorState
from bythebook.retrieve.search import Findings

Share = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(ge=0)]


class AgentQuery(BaseModel):
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
    top_k: int = Field(5, ge=1, le=20, strict=True)
    relevance_threshold: Share = 0.5
    selected_text: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=10, max_length=5000)]
        | None
    ) = None
    page_url: str | None = Field(None, max_length=2000)


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


class ResultSet(BaseModel):
    query: str
    results: list[SearchResult]
    total_count: int
    query_time_ms: Milliseconds
    search_time_ms: Milliseconds
    total_time_ms: Milliseconds
    # Beside S1's own fields:
    vectors: VectorState


class SourceCitation(BaseModel):
    chapter: str
    section: str
    url: str
    relevance_score: Share


class NumberedCitation(BaseModel):
    number: int = Field(ge=1)
    quote: str
    url: str
    link: str  # on to the quoted words, where a browser can find them
    filename: str
    section: str
    score: Share


class CitedSentence(BaseModel):
    text: str
    citations: list[int]
    lead: str  # what stands before it: a blank, a line break or an empty line


class NearbyTopic(BaseModel):
    title: str
    url: str


class AgentResponse(BaseModel):
    answer: str = Field(min_length=1)
    sources: list[SourceCitation]
    has_relevant_context: bool
    retrieval_time_ms: Milliseconds
    generation_time_ms: Milliseconds
    total_time_ms: Milliseconds
    # Beside S1's own fields:
    refusal_type: str | None
    citations: list[NumberedCitation]
    sentences: list[CitedSentence]
    confidence: Share
    confidence_level: Level
    disclaimer: str | None
    nearby: list[NearbyTopic]
    vectors: VectorState  # pending: the book was searched by its words alone


class AgentError(BaseModel):
    error_type: str
    message: str
    details: str | None = None  # for the log; never sent


def read(body: AgentQuery) -> Question:
    return Question(
        text=body.text,
        selection=body.selected_text,
        selection_url=body.page_url,
        top_k=body.top_k,
        floor=body.relevance_threshold,
    )


def show(reply: Reply) -> AgentResponse:
    outcome, confidence = reply.outcome, reply.evidence.confidence
    citations = outcome.citations if isinstance(outcome, Answer) else ()
    return AgentResponse(
        answer=outcome.text,
        sources=[
            SourceCitation(
                chapter=citation.place.chapter,
                section=citation.place.heading,
                url=citation.url,
                relevance_score=citation.score,
            )
            for citation in citations
        ],
        has_relevant_context=isinstance(outcome, Answer),
        retrieval_time_ms=reply.timings.retrieval_ms,
        generation_time_ms=reply.timings.generation_ms,
        total_time_ms=reply.timings.total_ms,
        refusal_type=outcome.type.value if isinstance(outcome, Refusal) else None,
        citations=[
            NumberedCitation(
                number=citation.number,
                quote=citation.quote,
                url=citation.url,
                link=citation.link,
                filename=citation.place.file,
                section=citation.place.heading,
                score=citation.score,
            )
            for citation in citations
        ],
        sentences=[
            CitedSentence(text=s.text, citations=list(s.citations), lead=s.lead)
            for s in (outcome.sentences if isinstance(outcome, Answer) else ())
        ],
        confidence=confidence.average if isinstance(outcome, Answer) else 0.0,
        confidence_level=confidence.level,
        disclaimer=outcome.disclaimer if isinstance(outcome, Answer) else None,
        nearby=_nearby(outcome.nearby if isinstance(outcome, Refusal) else ()),
        vectors=reply.vectors,
    )


def show_results(question: Question, findings: Findings) -> ResultSet:
    return ResultSet(
        query=question.text,
        results=[_result(hit) for hit in findings.hits],
        total_count=len(findings.hits),
        query_time_ms=findings.query_ms,
        search_time_ms=findings.search_ms,
        total_time_ms=findings.query_ms + findings.search_ms,
        vectors=findings.vectors,
    )


def fail(error: BookError) -> tuple[int, AgentError]:
    if isinstance(error, InvalidInput):
        return 400, AgentError(error_type="validation", message=str(error))
    kind = "generation" if isinstance(error, WriterFailed) else "retrieval"
    return 503, AgentError(error_type=kind, message=error.message)


def _result(hit: Hit) -> SearchResult:
    passage, place = hit.passage, hit.passage.place
    return SearchResult(
        score=hit.score,
        content=passage.text,
        source_url=place.url,
        section_title=place.heading,
        chunk_id=passage.id,
        chapter=place.chapter,
        page_title=place.title,
        position=passage.position,
        # S1 says MD5: a checksum for its clients, nothing here relies on it.
        content_hash=hashlib.md5(passage.text.encode(), usedforsecurity=False).hexdigest(),
        filename=place.file,
    )


def _nearby(topics: tuple[Topic, ...]) -> list[NearbyTopic]:
    return [NearbyTopic(title=topic.title, url=topic.url) for topic in topics]
