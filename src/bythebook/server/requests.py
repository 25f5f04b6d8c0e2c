"""What routes need to know about a request, and how errors are answered.

The middleware shares data of a request in ``request.state``: the matching ``contract``, the
``address`` and ``owner`` (a key's id, or None), the ``caller`` for rate limits, the ``body``.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from typing import Annotated

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from bythebook import validation
from bythebook.contracts.errors import (
    Call,
    Fail,
    is_ours,
    may_pass,
    retry_after,
    sentence_of,
    status_of,
)
from bythebook.errors import BookError, InvalidInput, KeyReused, NotAllowed
from bythebook.interfaces.conversations import Asker

_log = logging.getLogger(__name__)

_CORRECT = "Correct the request."


def call_of(request: Request) -> Call:
    """Return the request data that responses contain; the id is the same as in the log."""
    state = request.state
    return Call(
        request_id=getattr(state, "request_id", None) or str(uuid.uuid4()),
        elapsed_ms=(time.perf_counter() - state.began) * 1000,
        session=session_of(state.body),
    )


async def asker_of(request: Request) -> Asker:
    """Return the client of a request."""
    state = request.state
    return Asker(
        owner=state.owner,
        address=str(state.address) if state.address else None,
        request=getattr(state, "request", None),
    )


Client = Annotated[Asker, Depends(asker_of)]


def field_of(body: bytes, name: str) -> object:
    """Return a field of a JSON object; None if the body is not one or lacks the field."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields.get(name) if isinstance(fields, dict) else None


def session_of(body: bytes) -> uuid.UUID | None:
    """Return the ``session_id`` of a body if it is a UUID v4."""
    try:
        session = uuid.UUID(str(field_of(body, "session_id")))
    except ValueError:
        return None
    return session if session.version == 4 else None


# --- errors ---------------------------------------------------------------------------------------


class PageError(BaseModel):
    message: str


def fail(error: BookError, _: Call | None = None, /) -> tuple[int, PageError]:
    """Return an error of the book's pages and of the report, which have no contract."""
    return status_of(error), PageError(message=sentence_of(error))


def failure(error: BookError, call: Call, fail: Fail) -> JSONResponse:
    """Return an error response in the format of a contract; server-side errors are logged."""
    if is_ours(error):
        _log.warning("%s: %s", type(error).__name__, error)
    status, body = fail(error, call)
    response = JSONResponse(body.model_dump(mode="json"), status_code=status)
    seconds = retry_after(error)
    if seconds is not None:
        response.headers["Retry-After"] = str(seconds)
    if is_ours(error) and not may_pass(error):
        response.headers["X-Should-Retry"] = "false"  # OpenAI clients would retry
    if isinstance(error, KeyReused):
        response.status_code = 422  # the body is not invalid (400) but has changed
    if isinstance(error, NotAllowed):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def answer_error(request: Request, raised: Exception) -> Response:
    """Answer an error in the format of the request's contract, also those of FastAPI."""
    if isinstance(raised, HTTPException) and raised.status_code != 400:  # no such route or method
        return await http_exception_handler(request, raised)
    contract = request.state.contract
    error = _as_book_error(raised, request)
    return failure(error, call_of(request), contract.fail if contract else fail)


def add_error_handlers(app: FastAPI) -> None:
    for kind in (BookError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer_error)


def _as_book_error(raised: Exception, request: Request) -> BookError:
    if isinstance(raised, BookError):
        return raised
    if isinstance(raised, RequestValidationError):
        return _invalid(raised, request)
    # FastAPI wraps what is raised while it reads a body: bytes that are not text.
    return _not_json()


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
