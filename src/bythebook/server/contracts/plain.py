"""The plain contract (chatbot backend): ``POST /api/v1/query`` (and ``/api/query`` by a setting).

Its limits count words; the length of a word is limited only by the body size
(``access.body_bytes``). A refusal is reported in the answer's text, with ``sources: []``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, Field

from bythebook.documents.fields import AnyText, Degradable, Share, Text, degraded
from bythebook.documents.fit import by_place, citations_of, named, shortened
from bythebook.errors import BookError
from bythebook.server.contracts.base import Contract, Services, example
from bythebook.server.contracts.errors import sentence_of, status_of
from bythebook.server.examples import reply_responses
from bythebook.server.requests import Call, Client
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


class PlainQueryRequest(BaseModel):
    model_config = example(
        query="How do ROS 2 nodes exchange messages?",
        selected_text="Nodes in ROS 2 communicate via topics",
    )

    query: Annotated[Text, _at_most(500, "Query"), Field(description="at most 500 words")]
    selected_text: Annotated[AnyText, _at_most(200, "Selected text")] | None = Field(
        None, description="at most 200 words; guides the search"
    )


class PlainSource(BaseModel):
    chapter: str = Field(min_length=1)
    section: str = Field(min_length=1)
    filename: str = Field(min_length=1)
    score: Share


class PlainQueryResponse(Degradable):
    answer: str = Field(min_length=1)
    sources: list[PlainSource] = Field(max_length=TOP_K)


class PlainError(BaseModel):
    detail: str


def read(body: PlainQueryRequest) -> Question:
    return Question(
        text=body.query,
        selection=(body.selected_text or "").strip() or None,
        selection_only=False,
        top_k=TOP_K,
        min_score=LEAST_SCORE,
        min_evidence=LEAST_SCORE,
    )


def show(reply: Reply) -> PlainQueryResponse:
    reply = shortened(by_place(reply), sources=TOP_K)
    return PlainQueryResponse(
        answer=reply.outcome.text,
        sources=[
            PlainSource(
                chapter=named(citation.place.chapter, citation.place.title),
                section=named(citation.place.heading),
                filename=named(citation.place.file, citation.place.page_url),
                score=citation.score,
            )
            for citation in citations_of(reply)
        ],
        degraded=degraded(reply.vectors),
    )


def fail(error: BookError, _: Call | None = None) -> tuple[int, PlainError]:
    return status_of(error), PlainError(detail=sentence_of(error))


def add_routes(router: APIRouter, services: Services) -> None:
    async def query(
        body: PlainQueryRequest, client: Client, request: Request
    ) -> PlainQueryResponse:
        """Ask the book; a selection guides the search. Without an answer, `sources` is empty."""
        return show(await services.reply(read(body), client, request))

    for path in services.paths("plain", "/api/v1/query"):
        router.post(path, responses=reply_responses(show))(query)


CONTRACT = Contract(
    "plain",
    "One question, an answer and its sources; limits are counted in words.",
    error=PlainError,
    fail=fail,
    add_routes=add_routes,
)
