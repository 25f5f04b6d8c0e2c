"""Route class of the contracts, and what their routes need to know about a request.

A contract's errors, also those of FastAPI's validation, are returned in the format of the contract.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Protocol

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from bythebook import validation
from bythebook.documents.fields import DEGRADED_HEADER, degraded, now
from bythebook.errors import BookError, InvalidInput
from bythebook.server.contracts.errors import is_ours, may_pass, retry_after
from bythebook.server.middleware.messages import session_of
from bythebook.types import Asker, VectorState

_log = logging.getLogger(__name__)

_CORRECT = "Correct the request."


@dataclass(frozen=True, slots=True)
class Call:
    """Metadata of a request that responses report: its ids, session, time and duration."""

    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    at: datetime = field(default_factory=now)
    elapsed_ms: float = 0.0
    session: uuid.UUID | None = None
    query: str | None = None  # the question's id in the query log


class Fail(Protocol):
    """Convert an error to the status code and body of a contract."""

    def __call__(self, error: BookError, call: Call | None = None, /) -> tuple[int, BaseModel]: ...


async def asker_of(request: Request) -> Asker:
    """Return the client as identified by the access middleware."""
    state = request.state
    address = getattr(state, "address", None) or (request.client and request.client.host)
    return Asker(
        owner=getattr(state, "owner", None),
        address=str(address) if address else None,
        request=getattr(state, "request", None),
    )


Client = Annotated[Asker, Depends(asker_of)]


def call_of(request: Request, *, began: float | None = None) -> Call:
    """Return the request data that responses contain; the id is the same as in the log."""
    state = request.state
    return Call(
        request_id=getattr(state, "request_id", None) or str(uuid.uuid4()),
        elapsed_ms=0.0 if began is None else (time.perf_counter() - began) * 1000,
        session=getattr(state, "session", None),
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


def contract_route(contract_fails: Fail) -> type[APIRoute]:
    """Return a route class that returns errors in the format of its contract."""

    class ContractRoute(APIRoute):
        fail = staticmethod(contract_fails)

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                began = time.perf_counter()
                try:
                    return _with_headers(await handle(request), request)
                except (BookError, RequestValidationError, HTTPException) as raised:
                    error = _as_book_error(raised, request)
                return failure(error, failed_call(request, began=began), self.fail)

            return answer

    return ContractRoute


def _with_headers(response: Response, request: Request) -> Response:
    """Add what is the same for all contracts: answers and threads are for their reader only."""
    response.headers.setdefault("Cache-Control", "no-store")
    value = degraded(getattr(request.state, "vectors", VectorState.READY))
    if value is not None:
        response.headers[DEGRADED_HEADER] = value
    return response


def _as_book_error(
    raised: BookError | RequestValidationError | HTTPException, request: Request
) -> BookError:
    if isinstance(raised, BookError):
        return raised
    if isinstance(raised, RequestValidationError):
        return _invalid(raised, request)
    # FastAPI wraps what is raised while it reads a body: a size limit, or bytes that are not text.
    return raised.__cause__ if isinstance(raised.__cause__, BookError) else _not_json()


def _invalid(raised: RequestValidationError, request: Request) -> InvalidInput:
    if raised.errors()[0]["type"] == "json_invalid":
        return _not_json()
    if isinstance(raised.body, bytes):  # FastAPI parses only bodies declared as JSON
        return _wrong_type(request.headers.get("content-type", ""))
    message, field_name = validation.message_of(raised.errors(), raised.body)
    return InvalidInput(message, hint=_CORRECT, field=field_name)


def _wrong_type(content_type: str) -> InvalidInput:
    media_type = content_type.partition(";")[0].strip()
    problem = "not JSON"
    if not media_type:
        problem = "missing"
    elif validation.is_harmless(media_type):
        problem = media_type
    return InvalidInput(f"The Content-Type is {problem}; send application/json.", hint=_CORRECT)


def _not_json() -> InvalidInput:
    return InvalidInput("The body is not JSON.", hint="Send UTF-8 JSON.")
