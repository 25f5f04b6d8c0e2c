"""The documents of the query contract, also used in Python: ``respond(Query) -> Response``."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bythebook.documents.fields import Degradable, SentMoment, Text, degraded, now
from bythebook.documents.fit import by_place, citations_of, shortened
from bythebook.refusals import Refusal
from bythebook.types import Question, Reply

TOP_K = 5
SIMILARITY_THRESHOLD = 0.75
MAX_QUERY_LENGTH = 2000


class Query(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "How do ROS 2 nodes exchange messages?"}]}
    )

    text: Annotated[Text, StringConstraints(max_length=MAX_QUERY_LENGTH)]
    timestamp: SentMoment = Field(default_factory=now)


class QuerySource(BaseModel):
    chapter: str
    section: str
    module: str


class QueryResponse(Degradable):
    answer: str = Field(min_length=1)
    sources: list[QuerySource]
    is_refusal: bool = False
    refusal_reason: str | None = None

    @model_validator(mode="after")
    def _a_refusal_says_why(self) -> Self:
        if self.is_refusal and not self.refusal_reason:
            raise ValueError("a refusal must have a refusal_reason")
        return self


Response = QueryResponse  # its name in the Python API


def read(body: Query) -> Question:
    return Question(
        text=body.text,
        top_k=TOP_K,
        min_score=SIMILARITY_THRESHOLD,
        min_evidence=SIMILARITY_THRESHOLD,
    )


def show(reply: Reply) -> QueryResponse:
    reply = shortened(by_place(reply), sources=TOP_K)
    refusal = reply.outcome if isinstance(reply.outcome, Refusal) else None
    return QueryResponse(
        answer=reply.outcome.text,
        sources=[
            QuerySource(
                chapter=citation.place.chapter,
                section=citation.place.heading,
                module=citation.place.module,
            )
            for citation in citations_of(reply)
        ],
        is_refusal=refusal is not None,
        refusal_reason=refusal.type.value if refusal else None,
        degraded=degraded(reply.vectors),
    )
