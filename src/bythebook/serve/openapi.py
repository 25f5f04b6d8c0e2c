"""What the contracts say of the examples in, the description at ``/openapi.json`` out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel

from bythebook.errors import BookError
from bythebook.model import Reply
from bythebook.serve import examples

Responses = dict[int | str, dict[str, Any]]  # as FastAPI's routes take them
Link = dict[str, Any]

USUAL = (400, 401, 413, 429, 503)  # what any question may end in
_MEANING = {
    400: "The request cannot be used as it is",
    401: "A key is needed, or this one is not known",
    404: "Not there, or not there for you",
    413: "More than a request may carry",
    429: "Too many requests; `Retry-After` says when the next may come",
    503: "Something that the answer needs is out of order",
    504: "Something that the answer needs took too long",
}
_RETRY_AFTER = {"description": "Seconds to wait", "schema": {"type": "integer"}}


def shows(show: Callable[[Reply], BaseModel]) -> Responses:
    """An answer and a refusal, as a contract shows them."""
    return shown(200, answer=show(examples.ANSWERED), refusal=show(examples.REFUSED))


def shown(status: int, **bodies: BaseModel) -> Responses:
    values = {name: {"value": body.model_dump(mode="json")} for name, body in bodies.items()}
    return {status: {"content": {"application/json": {"examples": values}}}}


def link(method: str, path: str, *, body: Mapping[str, str] | None = None, **values: str) -> Link:
    """Where an answer leads on to, and what of it is to be handed over: runtime expressions."""
    pointer = path.replace("/", "~1")
    there: Link = {"operationRef": f"#/paths/{pointer}/{method}"}
    if values:
        there["parameters"] = values
    if body is not None:
        there["requestBody"] = dict(body)
    return there


def failures(
    model: type[BaseModel], fail: Callable[[BookError], BaseModel], statuses: Sequence[int]
) -> Responses:
    """One error for each status, as a contract tells it."""
    told: Responses = {}
    for status in statuses:
        told |= shown(status, error=fail(examples.ERRORS[status]))
        told[status] |= {"model": model, "description": _MEANING[status]}
    told[429]["headers"] = {"Retry-After": _RETRY_AFTER}
    return told


def describe(app: FastAPI, contracts: Sequence[APIRouter]) -> dict[str, Any]:
    """FastAPI's description, but for two things.

    Its own 422 is left out: every contract says 400 in its own words. And examples keep their
    nulls, without which they would break their own schemas.
    """
    if app.openapi_schema is None:
        described = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for unused in ("HTTPValidationError", "ValidationError"):
            described["components"]["schemas"].pop(unused, None)
        for route in (route for router in contracts for route in router.routes):
            assert isinstance(route, APIRoute)
            for method in route.methods or ():
                _mend(described["paths"][route.path_format][method.lower()], route)
        app.openapi_schema = described
    return app.openapi_schema


def _mend(operation: dict[str, Any], route: APIRoute) -> None:
    operation["responses"].pop("422", None)
    for status, response in route.responses.items():
        for media_type, content in response.get("content", {}).items():
            operation["responses"][str(status)]["content"][media_type] |= content
