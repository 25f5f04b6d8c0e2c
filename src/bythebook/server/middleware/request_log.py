"""Give each request an id, count it, and log each question as one line.

This middleware is the outermost one, so rejected and failed requests are included.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.conversations.query_log import logged_text
from bythebook.refusals import Refusal
from bythebook.server.contracts.registry import CONTRACTS
from bythebook.server.lifecycle import Lifecycle
from bythebook.server.logging_config import FIELDS
from bythebook.server.metrics import Metrics
from bythebook.types import Answer, Reply

_log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class _LoggedRequest:
    """Data of a request in progress, for the log."""

    id: str
    began: float = field(default_factory=perf_counter)
    status: int = 0
    reply: Reply | None = None
    generation: str = ""


_current: ContextVar[_LoggedRequest | None] = ContextVar("request", default=None)


class RequestLogMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        *,
        lifecycle: Lifecycle,
        metrics: Metrics,
        show_questions: bool = False,
    ) -> None:
        self._app = app
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._show_questions = show_questions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _LoggedRequest(_request_id(Headers(scope=scope).get("x-request-id", "")))
        scope.setdefault("state", {})["request_id"] = request.id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request.id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        token = _current.set(request)
        with self._lifecycle.in_flight():
            try:
                await self._app(scope, receive, send_with_id)
            except Exception:
                _log.exception("request failed", extra={FIELDS: {"request_id": request.id}})
                if request.status:
                    raise  # too late for another response: the server closes the connection
                body = {"detail": "Something went wrong.", "request_id": request.id}
                await JSONResponse(body, status_code=500)(scope, receive, send_with_id)
            finally:
                _current.reset(token)
                self._finish(request, scope)

    def _finish(self, request: _LoggedRequest, scope: Scope) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "unmatched")
        self._metrics.count_request(path, request.status)
        contract = next((tag for tag in getattr(route, "tags", ()) if tag in CONTRACTS), None)
        if contract is None or scope["method"] != "POST":
            return
        fields = {
            "request_id": request.id,
            "contract": contract,
            "route": path,
            "status": request.status,
            "outcome": _outcome(request, scope.get("state", {})),
            "request_ms": round((perf_counter() - request.began) * 1000, 1),
        }
        if request.reply is not None:
            fields |= _reply_fields(request.reply) | {"generation": request.generation}
            if self._show_questions:
                fields["question"] = logged_text(request.reply.question.text)
        _log.info("question", extra={FIELDS: fields})


def attach_reply(reply: Reply, generation: str) -> None:
    """Record the reply of the current request; the book calls this for every reply."""
    request = _current.get()
    if request is not None:
        request.reply, request.generation = reply, generation


def _reply_fields(reply: Reply) -> dict[str, Any]:
    refusal = reply.outcome.type.value if isinstance(reply.outcome, Refusal) else None
    return {
        "refusal_type": refusal,
        "confidence": 0.0 if refusal else round(reply.evidence.confidence.average, 3),
        "confidence_level": reply.evidence.confidence.level.value,
        "retrieval_ms": round(reply.timings.retrieval_ms, 1),
        "generation_ms": round(reply.timings.generation_ms, 1),
        "total_ms": round(reply.timings.total_ms, 1),
    }


def _outcome(request: _LoggedRequest, state: Mapping[str, Any]) -> str:
    if state.get("stream_ending", "done") != "done":
        return "failed" if state["stream_ending"] else "left"
    if request.reply is not None:
        return "answered" if isinstance(request.reply.outcome, Answer) else "refused"
    if request.status >= 400:
        return "rejected" if request.status < 500 else "failed"
    return "told"


def _request_id(given: str) -> str:
    """Return the client's own id if it is a plain token, else a new UUID.

    A UUID is written with dashes, as in the bodies of the contracts.
    """
    if not _TOKEN.fullmatch(given):
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(given))
    except ValueError:
        return given
