"""HTTP routes of the contracts.

A route converts its body to a question, asks the book and formats the reply; errors are returned
in the format of the contract.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import UUID4, BaseModel
from starlette.exceptions import HTTPException

from bythebook import validation
from bythebook.book import Book
from bythebook.documents.fields import DEGRADED_HEADER, degraded, now
from bythebook.errors import BookError, InvalidInput
from bythebook.interfaces.thread_rules import no_such_thread
from bythebook.server.api_docs import examples, openapi
from bythebook.server.contracts import ask as ask_contract
from bythebook.server.contracts import chat, envelope, openai, plain
from bythebook.server.contracts import query as query_contract
from bythebook.server.contracts.wire_types import Call, is_ours, may_pass, retry_after
from bythebook.server.middleware.body import session_of
from bythebook.server.sse import MEDIA_TYPE, Streams, bare
from bythebook.types import Asker, Message, Question, Reply, VectorState


class Fail(Protocol):
    """Convert an error to the status code and body of a contract: its function ``fail``."""

    def __call__(self, error: BookError, call: Call | None = None, /) -> tuple[int, BaseModel]: ...


_log = logging.getLogger(__name__)

_LAST_OFFSET = 2**31 - 1  # the largest integer that every database supports


async def asker_of(request: Request) -> Asker:
    """Return the client as identified by the access middleware."""
    known = request.state
    address = getattr(known, "address", None) or (request.client and request.client.host)
    return Asker(
        owner=getattr(known, "owner", None),
        address=str(address) if address else None,
        request=getattr(known, "request", None),
    )


Who = Annotated[Asker, Depends(asker_of)]


def contract_routers(
    library: Book, streams: Streams, *, api_query: str = "envelope"
) -> list[APIRouter]:
    """Return all routers; ``api_query`` names the contract that serves ``POST /api/query``."""
    shared = ("/api/query",)
    return [
        _book(library),
        _agent(library),
        _envelope(library, ("/api/v2/query", *(shared if api_query == "envelope" else ()))),
        _plain(library, ("/api/v1/query", *(shared if api_query == "plain" else ()))),
        _chat(library, streams),
        _threads(library),
        _feedback(library),
        _openai(library, streams),
    ]


async def _reply(
    library: Book,
    question: Question,
    who: Asker,
    request: Request,
    history: Sequence[Message] = (),
) -> Reply:
    """Answer; record for the response header whether vector search was available."""
    reply = await library.reply(question, asker=who, history=history)
    request.state.vectors = reply.vectors
    return reply


# --- the contracts --------------------------------------------------------------------------------


def _book(library: Book) -> APIRouter:
    router = _router("query", query_contract.Error, query_contract.fail)

    @router.post("/query", responses=openapi.shows(query_contract.show))
    async def query(
        body: query_contract.Query, who: Who, request: Request
    ) -> query_contract.Response:
        """Ask the book; `is_refusal` is true if the book does not contain an answer."""
        return query_contract.show(await _reply(library, query_contract.read(body), who, request))

    return router


def _agent(library: Book) -> APIRouter:
    router = _router("ask", ask_contract.AgentError, ask_contract.fail)

    @router.post("/ask", responses=openapi.shows(ask_contract.show))
    async def ask(
        body: ask_contract.AgentQuery, who: Who, request: Request
    ) -> ask_contract.AgentResponse:
        """Ask the book; `has_relevant_context` is false if the book does not contain an answer."""
        return ask_contract.show(await _reply(library, ask_contract.read(body), who, request))

    found = ask_contract.show_results(examples.QUESTION, examples.FINDINGS)

    @router.post("/search", responses=openapi.shown(200, found=found))
    async def search(body: ask_contract.AgentQuery, request: Request) -> ask_contract.ResultSet:
        """Search the book without an answer; results below `relevance_threshold` are left out."""
        question = ask_contract.read_search(body)
        findings = await library.search(question)
        request.state.vectors = findings.vectors
        return ask_contract.show_results(question, findings, reader=f"{request.base_url}read/")

    return router


def _envelope(library: Book, paths: tuple[str, ...]) -> APIRouter:
    statuses = (*openapi.USUAL, 504)
    router = _router("envelope", envelope.QueryResponse, envelope.fail, statuses=statuses)

    async def query(
        body: envelope.QueryRequest, who: Who, request: Request
    ) -> envelope.QueryResponse:
        """Ask the book, or a selection of it only; `status` is success, refused or error."""
        request.state.session = body.session_id  # so that error responses contain it, too
        asker = replace(who, session=str(body.session_id) if body.session_id else None)
        reply = await _reply(library, envelope.read(body), asker, request)
        return envelope.show(reply, call_of(request))

    shown = openapi.shows(partial(envelope.show, call=examples.CALL))
    for path in paths:
        router.post(path, responses=shown)(query)
    return router


def _plain(library: Book, paths: tuple[str, ...]) -> APIRouter:
    router = _router("plain", plain.Error, plain.fail)

    async def query(body: plain.QueryRequest, who: Who, request: Request) -> plain.QueryResponse:
        """Ask the book; a selection guides the search. Without an answer, `sources` is empty."""
        return plain.show(await _reply(library, plain.read(body), who, request))

    for path in paths:
        router.post(path, responses=openapi.shows(plain.show))(query)
    return router


def _chat(library: Book, streams: Streams) -> APIRouter:
    router = _router("chat", chat.ChatError, chat.fail, statuses=(*openapi.USUAL, 404))
    told = openapi.streamed(answer=examples.STREAM, refusal=examples.STREAM_REFUSED)
    events = {MEDIA_TYPE: told}
    shows = openapi.shows(partial(chat.show, call=examples.CALL))
    shows[200]["content"] |= events
    shows[200]["links"] = _leads_to_thread("$response.body#/session_id")
    leads = _leads_to_thread("$request.body#/session_id")

    @router.post("/chat/run", response_model=chat.ChatResponse, responses=shows)
    async def run(
        body: chat.ChatRequest, who: Who, request: Request
    ) -> Response | chat.ChatResponse:
        """Ask in a conversation; `should_answer` is false if the book does not contain an answer.

        With `stream: true` the reply is a stream of events, as from `/chat/stream`.
        """
        if body.stream:
            return await stream(body, who, request)
        question = chat.read(body, request=who.request)
        return chat.show(await _reply(library, question, who, request), call_of(request))

    @router.post(
        "/chat/stream",
        response_class=StreamingResponse,
        responses={200: {"content": events, "links": leads}},
    )
    async def stream(body: chat.ChatRequest, who: Who, request: Request) -> Response:
        """Ask in a conversation; the answer is streamed as server-sent events.

        The events come in this order: `session`, `retrieval`, any number of `delta`, any number of
        `citation`, and last `done` or `error`. The data of each is JSON in one line. The
        concatenated `text` of the deltas is the `response` of `done`, and `retrieval` agrees with
        `done`. A stream that ends without `done` or `error` was interrupted: send the same request
        again with `Last-Event-ID` to get the events after that id. Ids are `<stream>.<number>`,
        counted from 1 without a gap. While idle, a comment (`: ping`) keeps the connection open.
        """
        asked = replace(who, query=str(uuid.uuid4()))
        call = replace(call_of(request), query=asked.query)
        seen = request.headers.get("last-event-id")
        if seen is not None:
            return streams.resume(seen, owner=who.owner)
        question = chat.read(body, request=who.request)
        return streams.begin(
            chat.tell(question, library.ask(question, asker=asked), call),
            fail=partial(chat.tell_failure, call=call),
            owner=who.owner,
        )

    return router


def _threads(library: Book) -> APIRouter:
    """Return the router of chat's threads; a thread is visible to its owner only."""
    router = _router("chat", chat.ChatError, chat.fail, statuses=(*openapi.USUAL, 404))
    page = chat.show_threads(examples.THREADS, limit=20, offset=0)
    pages = openapi.shown(200, threads=page)
    pages[200]["links"] = _leads_to_thread("$response.body#/threads/0/thread_id") | {
        "next": openapi.link("get", "/chat/threads", offset="$response.body#/next_offset")
    }

    @router.get("/chat/threads", responses=pages)
    async def list_threads(
        who: Who,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        offset: Annotated[int, Query(ge=0, le=_LAST_OFFSET)] = 0,
    ) -> chat.ThreadList:
        """List the conversations of your API key, most recently updated first; without a key, none.

        Clients without a key cannot be told apart: they have access to a conversation only by its
        id.
        """
        if who.owner is None:
            return chat.ThreadList(threads=[], next_offset=None)
        listed = await library.threads.list(owner=who.owner, limit=limit + 1, offset=offset)
        return chat.show_threads(listed, limit=limit, offset=offset)

    async def read_thread(thread_id: UUID4, who: Who) -> chat.ConversationThread:
        """Return a conversation with its last 50 messages."""
        thread = await library.threads.read(str(thread_id), owner=who.owner)
        if thread is None:
            raise no_such_thread()
        return chat.show_thread(thread)

    async def delete_thread(thread_id: UUID4, who: Who) -> None:
        """Delete a conversation permanently."""
        if not await library.threads.delete(str(thread_id), owner=who.owner):
            raise no_such_thread()

    thread = openapi.shown(200, thread=chat.show_thread(examples.THREAD))
    same = _leads_to_thread("$request.path.thread_id")
    thread[200]["links"] = same
    for path in ("/chat/threads/{thread_id}", "/session/{thread_id}/history"):
        router.get(path, responses=thread)(read_thread)
    for path in ("/chat/threads/{thread_id}", "/session/{thread_id}"):
        # A deleted thread stays deleted until a new message is sent to it.
        router.delete(path, status_code=204, responses={204: {"links": same}})(delete_thread)
    return router


def _leads_to_thread(thread: str) -> dict[str, openapi.Link]:
    """Return the OpenAPI links of a thread; ``thread`` is the runtime expression of its id."""
    one, more = "/chat/threads/{thread_id}", {"message": "Tell me more.", "session_id": thread}
    return {
        "read": openapi.link("get", one, thread_id=thread),
        "history": openapi.link("get", "/session/{thread_id}/history", thread_id=thread),
        "go_on": openapi.link("post", "/chat/run", body=more),
        "delete": openapi.link("delete", one, thread_id=thread),
    }


def _feedback(library: Book) -> APIRouter:
    router = _router("chat", chat.ChatError, chat.fail)

    kept = openapi.shown(200, kept=chat.FeedbackResponse(kept=True))

    @router.post("/feedback", responses=kept)
    async def give_feedback(body: chat.FeedbackRequest) -> chat.FeedbackResponse:
        """Rate an answer; your text is stored only with your consent."""
        if library.feedback is not None:
            await library.feedback.add(chat.read_feedback(body, at=now()))
        return chat.FeedbackResponse(kept=library.feedback is not None)

    return router


def _openai(library: Book, streams: Streams) -> APIRouter:
    router = _router("openai", openai.Error, openai.fail, statuses=(*openapi.USUAL, 404))
    opened = Call()
    shows = openapi.shows(partial(openai.show, call=examples.CALL, prompt_tokens=9))
    shows[200]["content"][MEDIA_TYPE] = openapi.streamed(answer=examples.CHUNKS)
    leads = {"model": openapi.link("get", "/v1/models/{model}", model="$response.body#/model")}
    shows[200]["links"] = leads

    @router.post("/v1/chat/completions", response_model=openai.Completion, responses=shows)
    async def complete(
        body: openai.CompletionRequest, who: Who, request: Request
    ) -> Response | openai.Completion:
        """Ask the book as if it were a language model; `sources` lists the cited passages."""
        call, question = call_of(request), openai.read(body)
        history = openai.read_history(body, call)
        if body.stream:
            journey = library.ask(question, asker=who, history=history)
            return streams.begin(
                openai.tell(body, journey, call),
                fail=openai.tell_failure,
                owner=who.owner,
                write=bare,
            )
        reply = await _reply(library, question, who, request, history)
        return openai.show(reply, call, prompt_tokens=body.tokens)

    model = openai.show_model(examples.CALL)

    models = openapi.shown(200, models=openai.ModelList(data=[model]))
    first = "$response.body#/data/0/id"
    models[200]["links"] = {"model": openapi.link("get", "/v1/models/{model}", model=first)}

    @router.get("/v1/models", responses=models)
    async def list_models() -> openai.ModelList:
        """List the models: only the book."""
        return openai.ModelList(data=[openai.show_model(opened)])

    @router.get("/v1/models/{model}", responses=openapi.shown(200, model=model))
    async def read_model(model: str) -> openai.Model:
        """Return a model."""
        openai.check_model(model)
        return openai.show_model(opened)

    return router


# --- error responses ------------------------------------------------------------------------------


def call_of(request: Request, *, began: float | None = None) -> Call:
    """Return the request data that responses contain; the id is the same as in the log."""
    known = request.state
    return Call(
        request_id=getattr(known, "request_id", None) or str(uuid.uuid4()),
        elapsed_ms=0.0 if began is None else (time.perf_counter() - began) * 1000,
        session=getattr(known, "session", None),
    )


def failed_call(request: Request, *, began: float | None = None) -> Call:
    """Like ``call_of``, with the session id from the body if no route has parsed it."""
    call = call_of(request, began=began)
    body = getattr(request.state, "body", b"")
    return call if call.session else replace(call, session=session_of(body))


def failure(error: BookError, call: Call, fail: Fail) -> JSONResponse:
    """Return an error response in the format of a contract; server-side errors are logged."""
    if is_ours(error):
        _log.warning("%s: %s", type(error).__name__, error)
    status, body = fail(error, call)
    return JSONResponse(body.model_dump(mode="json"), status_code=status, headers=_headers(error))


def _headers(error: BookError) -> Mapping[str, str]:
    seconds = retry_after(error)
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    if is_ours(error) and not may_pass(error):
        headers["X-Should-Retry"] = "false"  # OpenAI clients would retry
    return headers


def _marked(response: Response, request: Request) -> Response:
    """Add the header of a reply that was made without vector search."""
    mark = degraded(getattr(request.state, "vectors", VectorState.READY))
    if mark is not None:
        response.headers[DEGRADED_HEADER] = mark
    return response


def contract_route(contract_fails: Fail) -> type[APIRoute]:
    """Return a route class that returns errors in the format of its contract."""

    class ContractRoute(APIRoute):
        fail = staticmethod(contract_fails)

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                began = time.perf_counter()
                try:
                    return _marked(await handle(request), request)
                except (BookError, RequestValidationError, HTTPException) as raised:
                    error = _ours(raised, request)
                return failure(error, failed_call(request, began=began), self.fail)

            return answer

    return ContractRoute


def _ours(
    raised: BookError | RequestValidationError | HTTPException, request: Request
) -> BookError:
    if isinstance(raised, BookError):
        return raised
    if isinstance(raised, RequestValidationError):
        return _invalid(raised, request)
    # FastAPI wraps what is raised while it reads a body: a size limit, or bytes that are not text.
    return raised.__cause__ if isinstance(raised.__cause__, BookError) else _no_json()


def _invalid(raised: RequestValidationError, request: Request) -> InvalidInput:
    if raised.errors()[0]["type"] == "json_invalid":
        return _no_json()
    if isinstance(raised.body, bytes):  # FastAPI parses only bodies declared as JSON
        return _other_type(request.headers.get("content-type", ""))
    said, field = validation.message_of(raised.errors(), raised.body)
    return InvalidInput(said, hint="Correct the request.", field=field)


def _other_type(content_type: str) -> InvalidInput:
    named = content_type.partition(";")[0].strip()
    if not named:
        said = "The Content-Type is missing; send application/json."
    elif validation.is_harmless(named):
        said = f"The Content-Type is {named}; send application/json."
    else:
        said = "The Content-Type is not JSON; send application/json."
    return InvalidInput(said, hint="Correct the request.")


def _no_json() -> InvalidInput:
    return InvalidInput("The body is not JSON.", hint="Send UTF-8 JSON.")


def _router(
    tag: str, model: type[BaseModel], fail: Fail, *, statuses: tuple[int, ...] = openapi.USUAL
) -> APIRouter:
    told = openapi.failures(model, lambda error: fail(error, examples.CALL)[1], statuses)
    return APIRouter(tags=[tag], route_class=contract_route(fail), responses=told)
