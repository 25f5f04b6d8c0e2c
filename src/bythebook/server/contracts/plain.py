"""The plain contract (chatbot backend): ``POST /api/v1/query`` (and ``/api/query`` by a setting).

Its limits count words; the length of a word is limited only by the body size
(``access.body_bytes``). A refusal is reported in the answer's text, with ``sources: []``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bythebook.documents.fields import Degradable, Share, Text, degraded
from bythebook.documents.fit import by_place, citations_of, named, shortened
from bythebook.errors import BookError
from bythebook.server.contracts.wire_types import Call, sentence_of, status_of
from bythebook.types import Question, Reply

TOP_K = 5
LEAST_SCORE = 0.5  # not specified by plain; same as ask's DEFAULT_RELEVANCE_THRESHOLD


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
        selection_only=False,
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
