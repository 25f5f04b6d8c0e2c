"""Request ids, a log line per question, health, readiness and metrics.

``Operations`` is the state of one application. Its middleware is the outermost one, so that each
request gets an id and is counted and logged however it ends.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook import __version__
from bythebook.book import Book
from bythebook.errors import BookError
from bythebook.server.api_docs.openapi import CONTRACTS
from bythebook.server.observability.logging_config import FIELDS
from bythebook.server.observability.metrics import CONTENT_TYPE, Metrics
from bythebook.server.sse import Streams
from bythebook.types import Answer, Refusal, Reply

_log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_WARM_UP_AGAIN_S = 1.0
_DRAIN_S = 10.0


class Health(BaseModel):
    status: Literal["ok", "failing"]
    services: dict[str, str]
    version: str


class Ready(BaseModel):
    status: Literal["ready", "warming", "stopping", "failing"]


@dataclass(slots=True)
class _Request:
    """Data of a request in progress, for the log."""

    id: str
    began: float = field(default_factory=perf_counter)
    status: int = 0
    outcome: str = ""
    reply: Reply | None = None
    generation: str = ""


_current: ContextVar[_Request | None] = ContextVar("request", default=None)


class Operations:
    def __init__(self, library: Book, streams: Streams, *, show_questions: bool = False) -> None:
        self.metrics = Metrics(lambda: streams.open_count, library.asked)
        self._library = library
        self._streams = streams
        self._show_questions = show_questions
        self._warm = False
        self._stopping = False
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        library.observers.append(self._note)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the application's lifespan: warm up the book; drain and close it at the end."""
        warming = asyncio.create_task(self._warm_up())
        self._library.start_background_jobs()
        try:
            yield
        finally:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
            await self.drain()
            await self._library.close()

    async def drain(self) -> None:
        """Report the status stopping, end the streams, and wait for the requests in progress."""
        self._stopping = True
        await self._streams.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._idle.wait()

    def live(self) -> Ready:
        """Return the state of this process alone; it can work without some of its stores."""
        if self._stopping:
            return Ready(status="stopping")
        return Ready(status="ready" if self._warm else "warming")

    async def ready(self) -> Ready:
        own = self.live()
        if own.status != "ready":
            return own
        states = await self._library.stores()
        well = all(state == "ok" for state in states.values())
        return Ready(status="ready" if well else "failing")

    async def _warm_up(self) -> None:
        complained = False
        while not self._warm:
            try:
                await self._library.warm_up()
                self._warm = True
            except BookError as error:
                if not complained:
                    _log.warning("the book cannot be opened yet: %s", error)
                complained = True
                await asyncio.sleep(_WARM_UP_AGAIN_S)

    def _note(self, reply: Reply, generation: str) -> None:
        self.metrics.count_reply(reply, generation)
        request = _current.get()
        if request is not None:
            request.reply, request.generation = reply, generation

    def around(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application: give each request an id, count it and log it."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request = _Request(_request_id(scope))
            scope.setdefault("state", {})["request_id"] = request.id

            async def send_numbered(message: Message) -> None:
                if message["type"] == "http.response.start":
                    request.status = message["status"]
                    headers = [*message.get("headers", ()), (b"x-request-id", request.id.encode())]
                    message = {**message, "headers": headers}
                await send(message)

            token = _current.set(request)
            self._come()
            try:
                await app(scope, receive, send_numbered)
            except Exception:
                _log.exception("a request failed", extra={FIELDS: {"request_id": request.id}})
                if request.status:
                    raise  # too late for another response: the server closes the connection
                await _broken(request.id)(scope, receive, send_numbered)
            finally:
                self._go()
                _current.reset(token)
                self._finish(request, scope)

        return watched

    def _come(self) -> None:
        self._in_flight += 1
        self._idle.clear()

    def _go(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

    def _finish(self, request: _Request, scope: Scope) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "unmatched")
        self.metrics.count_request(path, request.status)
        tags = [str(tag) for tag in getattr(route, "tags", ())]
        contract = next((tag for tag in tags if tag in CONTRACTS), None)
        if contract is not None and scope["method"] == "POST":
            request.outcome = _outcome(request, scope.get("state", {}))
            _log.info("question", extra={FIELDS: self._line(request, contract, path)})

    def _line(self, request: _Request, contract: str, path: str) -> dict[str, Any]:
        line: dict[str, Any] = {
            "request_id": request.id,
            "contract": contract,
            "route": path,
            "status": request.status,
            "outcome": request.outcome,
            "request_ms": round((perf_counter() - request.began) * 1000, 1),
        }
        reply = request.reply
        if reply is None:
            return line
        refusal = reply.outcome.type.value if isinstance(reply.outcome, Refusal) else None
        line |= {
            "refusal_type": refusal,
            "confidence": 0.0 if refusal else round(reply.evidence.confidence.average, 3),
            "confidence_level": reply.evidence.confidence.level.value,
            "retrieval_ms": round(reply.timings.retrieval_ms, 1),
            "generation_ms": round(reply.timings.generation_ms, 1),
            "total_ms": round(reply.timings.total_ms, 1),
            "generation": request.generation,
        }
        if self._show_questions:
            line["question"] = reply.question.text
        return line


def _outcome(request: _Request, state: Mapping[str, Any]) -> str:
    if state.get("stream_ending", "done") != "done":
        return "failed" if state["stream_ending"] else "left"
    if request.reply is not None:
        return "answered" if isinstance(request.reply.outcome, Answer) else "refused"
    if request.status >= 400:
        return "rejected" if request.status < 500 else "failed"
    return "told"


def _broken(request_id: str) -> Response:
    body = {"detail": "Something went wrong.", "request_id": request_id}
    return JSONResponse(body, status_code=500)


def _request_id(scope: Scope) -> str:
    """Return the client's own id if it is a plain token, else a new UUID.

    A UUID is written with dashes, as in the bodies of the contracts.
    """
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            if _TOKEN.fullmatch(given):
                return _spelled(given)
    return str(uuid.uuid4())


def _spelled(token: str) -> str:
    try:
        return str(uuid.UUID(token))
    except ValueError:
        return token


def operation_routes(library: Book, operations: Operations) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/health", responses={503: {"model": Health}})
    async def health(response: Response) -> Health:
        services = await library.health()
        well = all(state == "ok" for state in services.values())
        response.status_code = 200 if well else 503
        return Health(status="ok" if well else "failing", services=services, version=__version__)

    @router.get("/ready", responses={503: {"model": Ready}})
    async def ready(response: Response) -> Ready:
        state = await operations.ready()
        response.status_code = 200 if state.status == "ready" else 503
        return state

    @router.get("/live", responses={503: {"model": Ready}})
    async def live(response: Response) -> Ready:
        state = operations.live()
        response.status_code = 200 if state.status == "ready" else 503
        return state

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        return Response(operations.metrics.text(), media_type=CONTENT_TYPE)

    return router
