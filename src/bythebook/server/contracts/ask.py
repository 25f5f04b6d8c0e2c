"""The ask contract: ``POST /ask`` and ``POST /search``.

A refusal is an answer with ``has_relevant_context: false``; an error is an ``AgentError``.
The responses are the documents that the command line and the Python API return too.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, StringConstraints

from bythebook.documents.fields import PageUrl, Selection, Text, Threshold
from bythebook.documents.reply import AgentResponse, ResultSet, show, show_results
from bythebook.errors import BookError, WriterFailed
from bythebook.server import examples
from bythebook.server.contracts.base import Contract, Services, example, reader_of
from bythebook.server.contracts.errors import is_ours, sentence_of, status_of
from bythebook.server.requests import Call, Client
from bythebook.types import Question

DEFAULT_TOP_K, MAX_TOP_K = 5, 20
DEFAULT_RELEVANCE_THRESHOLD = 0.5
MAX_QUERY_LENGTH = 2000


class AgentQuery(BaseModel):
    model_config = example(
        text="How do ROS 2 nodes exchange messages?", top_k=5, relevance_threshold=0.5
    )

    text: Annotated[Text, StringConstraints(max_length=MAX_QUERY_LENGTH)]
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOP_K, strict=True)
    relevance_threshold: Threshold = DEFAULT_RELEVANCE_THRESHOLD
    # Extensions to ask:
    selected_text: Selection | None = Field(
        None, description="answer only from this text; a search is only guided by it"
    )
    page_url: PageUrl | None = Field(None, description="the page that contains the selected text")


class AgentErrorType(StrEnum):
    VALIDATION = "validation"
    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    NO_CONTEXT = "no_context"  # never sent: a refusal is an answer


class AgentError(BaseModel):
    error_type: AgentErrorType
    message: str
    details: str | None = None  # for logs only; never sent


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


def fail(error: BookError, _: Call | None = None) -> tuple[int, AgentError]:
    return status_of(error), AgentError(error_type=_error_type(error), message=sentence_of(error))


def _error_type(error: BookError) -> AgentErrorType:
    if not is_ours(error):
        return AgentErrorType.VALIDATION
    is_written = isinstance(error, WriterFailed)
    return AgentErrorType.GENERATION if is_written else AgentErrorType.RETRIEVAL


def add_routes(router: APIRouter, services: Services) -> None:
    @router.post("/ask", responses=examples.reply_responses(show))
    async def ask(body: AgentQuery, client: Client, request: Request) -> AgentResponse:
        """Ask the book; `has_relevant_context` is false if the book does not contain an answer."""
        return show(await services.reply(read(body), client, request))

    found = show_results(examples.QUESTION, examples.FINDINGS, reader="")

    @router.post("/search", responses=examples.response(found=found))
    async def search(body: AgentQuery, request: Request) -> ResultSet:
        """Search the book without an answer; results below `relevance_threshold` are left out."""
        question = read_search(body)
        findings = await services.book.search(question)
        request.state.vectors = findings.vectors
        return show_results(question, findings, reader=reader_of(request))


CONTRACT = Contract(
    "ask",
    "An answer with numbered citations and timings, or only the search.",
    error=AgentError,
    fail=fail,
    add_routes=add_routes,
    error_code="error_type",
)
