"""Contracts that answer one question by one JSON document: query, ask, envelope and plain."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fastapi import APIRouter, Request

from bythebook.contracts import ask, envelope, plain, query
from bythebook.server import examples
from bythebook.server.contracts.base import Contract, Services, reader_of
from bythebook.server.requests import Client, call_of


def _add_query_routes(router: APIRouter, services: Services) -> None:
    @router.post("/query", name="query", responses=examples.reply_responses(query.show))
    async def query_book(body: query.Query, client: Client, request: Request) -> query.Response:
        """Ask the book; `is_refusal` is true if the book does not contain an answer."""
        return query.show(await services.reply(query.read(body), client, request))


def _add_ask_routes(router: APIRouter, services: Services) -> None:
    @router.post("/ask", name="ask", responses=examples.reply_responses(ask.show))
    async def ask_book(body: ask.AgentQuery, client: Client, request: Request) -> ask.AgentResponse:
        """Ask the book; `has_relevant_context` is false if the book does not contain an answer."""
        return ask.show(await services.reply(ask.read(body), client, request))

    found = ask.show_results(examples.QUESTION, examples.FINDINGS, reader="")

    @router.post("/search", responses=examples.response(found=found))
    async def search(body: ask.AgentQuery, request: Request) -> ask.ResultSet:
        """Search the book without an answer; results below `relevance_threshold` are left out."""
        results = await ask.semantic_search(services.book, body, reader=reader_of(request))
        request.state.vectors = results.vectors
        return results


def _add_envelope_routes(router: APIRouter, services: Services) -> None:
    async def query(
        body: envelope.QueryRequest, client: Client, request: Request
    ) -> envelope.QueryResponse:
        """Ask the book, or only a selection of it; `status` is success, refused or error."""
        asker = replace(client, session=str(body.session_id) if body.session_id else None)
        reply = await services.reply(envelope.read(body), asker, request)
        return envelope.show(reply, call_of(request))

    shown = examples.reply_responses(partial(envelope.show, call=examples.CALL))
    for path in services.paths("envelope", "/api/v2/query"):
        router.post(path, responses=shown)(query)


def _add_plain_routes(router: APIRouter, services: Services) -> None:
    async def query(
        body: plain.QueryRequest, client: Client, request: Request
    ) -> plain.QueryResponse:
        """Ask the book; a selection guides the search. Without an answer, `sources` is empty."""
        return plain.show(await services.reply(plain.read(body), client, request))

    for path in services.paths("plain", "/api/v1/query"):
        router.post(path, responses=examples.reply_responses(plain.show))(query)


QUERY = Contract(
    "query",
    "One question, one answer; `is_refusal` tells a refusal from an answer.",
    error=query.QueryError,
    fail=query.fail,
    add_routes=_add_query_routes,
    error_code="error_type",
)
ASK = Contract(
    "ask",
    "An answer with numbered citations and timings, or only the search.",
    error=ask.AgentError,
    fail=ask.fail,
    add_routes=_add_ask_routes,
    error_code="error_type",
)
ENVELOPE = Contract(
    "envelope",
    "The same envelope for every outcome: `status` is success, refused or error.",
    error=envelope.QueryResponse,
    fail=envelope.fail,
    add_routes=_add_envelope_routes,
    error_code="error.code",
    statuses=(504,),
)
PLAIN = Contract(
    "plain",
    "One question, an answer and its sources; limits are counted in words.",
    error=plain.PlainError,
    fail=plain.fail,
    add_routes=_add_plain_routes,
)
