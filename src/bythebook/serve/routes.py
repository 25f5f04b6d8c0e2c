"""A library in, the routes of the five contracts out.

A route reads its body into a question, asks the library and shows the reply; whatever goes wrong
on the way leaves in its contract's own shape.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from bythebook.assemble import Library
from bythebook.errors import BookError, InvalidInput
from bythebook.serve import examples, openapi
from bythebook.serve.contracts import agent, book, chat, envelope, plain
from bythebook.serve.contracts.wire import Call, is_ours, retry_after
from bythebook.serve.stream import MEDIA_TYPE, Streams


class Fail(Protocol):
    """How a contract tells an error: its ``fail``."""

    def __call__(self, error: BookError, call: Call | None = None, /) -> tuple[int, BaseModel]: ...


_log = logging.getLogger(__name__)


def contract_routers(
    library: Library, streams: Streams, *, api_query: str = "envelope"
) -> list[APIRouter]:
    """All of them; ``api_query`` names the contract that answers ``POST /api/query``."""
    shared = ("/api/query",)
    return [
        _book(library),
        _agent(library),
        _envelope(library, ("/api/v2/query", *(shared if api_query == "envelope" else ()))),
        _plain(library, ("/api/v1/query", *(shared if api_query == "plain" else ()))),
        _chat(library, streams),
    ]


# --- the contracts --------------------------------------------------------------------------------


def _book(library: Library) -> APIRouter:
    router = _router("S0", book.Error, book.fail)

    @router.post("/query", responses=openapi.shows(book.show))
    async def query(body: book.Query) -> book.Response:
        """Ask the book; `is_refusal` says whether it does not say."""
        return book.show(await library.reply(book.read(body)))

    return router


def _agent(library: Library) -> APIRouter:
    router = _router("S1", agent.AgentError, agent.fail)

    @router.post("/ask", responses=openapi.shows(agent.show))
    async def ask(body: agent.AgentQuery) -> agent.AgentResponse:
        """Ask the book; `has_relevant_context` says whether it answers."""
        return agent.show(await library.reply(agent.read(body)))

    found = agent.show_results(examples.QUESTION, examples.FINDINGS)

    @router.post("/search", responses=openapi.shown(200, found=found))
    async def search(body: agent.AgentQuery) -> agent.ResultSet:
        """Search the book without an answer."""
        question = agent.read(body)
        return agent.show_results(question, await library.search(question))

    return router


def _envelope(library: Library, paths: tuple[str, ...]) -> APIRouter:
    statuses = (*openapi.USUAL, 504)
    router = _router("S2", envelope.QueryResponse, envelope.fail, statuses=statuses)

    async def query(body: envelope.QueryRequest, request: Request) -> envelope.QueryResponse:
        """Ask the book, or a selection of it alone; `status` says which of three came out."""
        request.state.session = body.session_id
        return envelope.show(await library.reply(envelope.read(body)), call_of(request))

    for path in paths:
        router.post(
            path, responses=openapi.shows(lambda reply: envelope.show(reply, examples.CALL))
        )(query)
    return router


def _plain(library: Library, paths: tuple[str, ...]) -> APIRouter:
    router = _router("S3", plain.Error, plain.fail)

    async def query(body: plain.QueryRequest) -> plain.QueryResponse:
        """Ask the book; a selection leads the search. No sources: the book does not say."""
        return plain.show(await library.reply(plain.read(body)))

    for path in paths:
        router.post(path, responses=openapi.shows(plain.show))(query)
    return router


def _chat(library: Library, streams: Streams) -> APIRouter:
    router = _router("S4", chat.ChatError, chat.fail)
    told = {"answer": {"value": examples.STREAM}}
    events = {MEDIA_TYPE: {"schema": {"type": "string"}, "examples": told}}
    shows = openapi.shows(partial(chat.show, call=examples.CALL))
    shows[200]["content"] |= events

    @router.post("/chat/run", response_model=chat.ChatResponse, responses=shows)
    async def run(body: chat.ChatRequest, request: Request) -> Response | chat.ChatResponse:
        """Ask the book in a conversation; `should_answer` says whether it answers."""
        if body.stream:
            return await stream(body, request)
        return chat.show(await library.reply(chat.read(body)), call_of(request))

    @router.post(
        "/chat/stream", response_class=StreamingResponse, responses={200: {"content": events}}
    )
    async def stream(body: chat.ChatRequest, request: Request) -> Response:
        """The same, told as it is made: server-sent events, the last one `done` or `error`."""
        owner, call = getattr(request.state, "owner", None), call_of(request)
        seen = request.headers.get("last-event-id")
        if seen is not None:
            return streams.resume(seen, owner=owner)
        question = chat.read(body)
        return streams.begin(
            chat.tell(question, library.ask(question), call),
            fail=partial(chat.tell_failure, call=call),
            owner=owner,
        )

    return router


# --- how errors leave -----------------------------------------------------------------------------


def call_of(request: Request, *, began: float | None = None) -> Call:
    """What the wire may tell of a request; its id is the one that the log has."""
    known = request.state
    return Call(
        request_id=getattr(known, "request_id", None) or str(uuid.uuid4()),
        elapsed_ms=0.0 if began is None else (time.perf_counter() - began) * 1000,
        session=getattr(known, "session", None),
    )


def failure(error: BookError, call: Call, fail: Fail) -> JSONResponse:
    """An error as its contract tells it. What is ours to mend is told to the log in full."""
    if is_ours(error):
        _log.warning("%s: %s", type(error).__name__, error)
    status, body = fail(error, call)
    return JSONResponse(body.model_dump(mode="json"), status_code=status, headers=_headers(error))


def _headers(error: BookError) -> Mapping[str, str]:
    seconds = retry_after(error)
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _route(contract_fails: Fail) -> type[APIRoute]:
    """Routes whose errors leave in their contract's own shape."""

    class ContractRoute(APIRoute):
        fail = staticmethod(contract_fails)

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                began = time.perf_counter()
                try:
                    return await handle(request)
                except (BookError, RequestValidationError, HTTPException) as raised:
                    error = _ours(raised)
                return failure(error, call_of(request, began=began), self.fail)

            return answer

    return ContractRoute


def _ours(raised: BookError | RequestValidationError | HTTPException) -> BookError:
    if isinstance(raised, BookError):
        return raised
    if isinstance(raised, RequestValidationError):
        return _invalid(raised)
    # FastAPI wraps what is raised while it reads a body: a limit, or bytes that are no text.
    return raised.__cause__ if isinstance(raised.__cause__, BookError) else _no_json()


def _invalid(raised: RequestValidationError) -> InvalidInput:
    first = raised.errors()[0]
    if first["type"] == "json_invalid":
        return _no_json()
    if first["type"] == "value_error":  # a sentence of the contract's own
        return InvalidInput(f"{first['ctx']['error']}.", cure="Correct the request.")
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    return InvalidInput(f"{where}: {first['msg']}.", cure="Correct the request.")


def _no_json() -> InvalidInput:
    return InvalidInput("The body is not JSON.", cure="Send UTF-8 JSON.")


def _router(
    tag: str, model: type[BaseModel], fail: Fail, *, statuses: tuple[int, ...] = openapi.USUAL
) -> APIRouter:
    told = openapi.failures(model, lambda error: fail(error, examples.CALL)[1], statuses)
    return APIRouter(tags=[tag], route_class=_route(fail), responses=told)
