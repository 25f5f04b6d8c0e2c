"""S3, the chatbot backend's contract: ``POST /api/v1/query`` (and ``/api/query`` by a setting).

Its limits count words: how long a word may be, only the size of the body limits
(``door.body_bytes``). It says no in the answer's own text, with ``sources: []``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bythebook.errors import BookError
from bythebook.model import Question, Reply
from bythebook.serve.contracts.shape import by_place, citations_of, named, shortened
from bythebook.serve.contracts.wire import (
    Call,
    Degradable,
    Share,
    Text,
    degraded,
    sentence_of,
    status_of,
)

TOP_K = 5
LEAST_SCORE = 0.5  # not given by the seed; S1's DEFAULT_RELEVANCE_THRESHOLD


def _at_most(words: int, what: str) -> AfterValidator:
    def check(text: str) -> str:
        count = len(text.split())
        if count > words:
            raise ValueError(f"{what} exceeds {words} words (has {count})")
        return text

    return AfterValidator(check)


class QueryRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "How do ROS 2 nodes exchange messages?",
                    "selected_text": "Nodes in ROS 2 communicate via topics",
                }
            ]
        }
    )

    query: Annotated[Text, _at_most(500, "Query"), Field(description="at most 500 words")]
    selected_text: (
        Annotated[str, _at_most(200, "Selected text"), Field(description="at most 200 words")]
        | None
    ) = None


class Source(BaseModel):
    chapter: str = Field(min_length=1)
    section: str = Field(min_length=1)
    filename: str = Field(min_length=1)
    score: Share


class QueryResponse(Degradable):
    answer: str = Field(min_length=1)
    sources: list[Source] = Field(max_length=TOP_K)


class Error(BaseModel):
    detail: str


def read(body: QueryRequest) -> Question:
    return Question(
        text=body.query,
        selection=(body.selected_text or "").strip() or None,
        fenced=False,
        top_k=TOP_K,
        floor=LEAST_SCORE,
    )


def show(reply: Reply) -> QueryResponse:
    reply = shortened(by_place(reply), sources=TOP_K)
    return QueryResponse(
        answer=reply.outcome.text,
        sources=[
            Source(
                chapter=named(citation.place.chapter, citation.place.title),
                section=named(citation.place.heading),
                filename=named(citation.place.file, citation.place.page_url),
                score=citation.score,
            )
            for citation in citations_of(reply)
        ],
        degraded=degraded(reply.vectors),
    )


def fail(error: BookError, _: Call | None = None) -> tuple[int, Error]:
    return status_of(error), Error(detail=sentence_of(error))
