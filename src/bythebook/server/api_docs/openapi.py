"""Build the OpenAPI document at ``/openapi.json``, with examples computed by the contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel

from bythebook.errors import BookError
from bythebook.server.api_docs import examples, headers, schemas
from bythebook.types import Reply

Responses = dict[int | str, dict[str, Any]]  # format of FastAPI's ``responses``
Link = dict[str, Any]

# Tags of the contracts' routes, with descriptions.
CONTRACTS = {
    "query": "One question, one answer; `is_refusal` tells a refusal from an answer.",
    "ask": "An answer with numbered citations and times, or the search alone.",
    "envelope": "One envelope for every outcome: `status` is success, refused or error.",
    "plain": "A question in, an answer and its sources out; limits are counted in words.",
    "chat": "Conversations: an answer at once or as a stream of events, threads and feedback.",
    "openai": "The book as a model for chat clients that speak OpenAI's chat completions.",
}
_ABOUT = (
    "Ask a book. Five contracts and OpenAI's lead to the same answers; use the one that your "
    "client knows. Where the server needs keys, send one as `Authorization: Bearer btk_…` or as "
    "`X-API-Key: btk_…`. Every response carries `X-Request-Id`."
)

USUAL = (400, 401, 413, 422, 429, 503)  # error statuses that any question may get
_MEANING = {
    400: "The request cannot be used as it is",
    401: "A key is needed, or this one is not known",
    404: "Not there, or not there for you",
    413: "More than a request may carry",
    422: "The `Idempotency-Key` came with another request before",
    429: "Too many requests; `Retry-After` says when the next may come",
    503: "Something that the answer needs is out of order",
    504: "Something that the answer needs took too long",
}


def shows(show: Callable[[Reply], BaseModel]) -> Responses:
    """Return example responses of a contract: an answer and a refusal."""
    return shown(200, answer=show(examples.ANSWERED), refusal=show(examples.REFUSED))


def shown(status: int, **bodies: BaseModel) -> Responses:
    values = {name: {"value": body.model_dump(mode="json")} for name, body in bodies.items()}
    return {status: {"content": {"application/json": {"examples": values}}}}


def streamed(**told: str) -> dict[str, Any]:
    """Describe event streams by examples, since OpenAPI 3.1 cannot describe their events."""
    values = {name: {"value": events} for name, events in told.items()}
    return {"schema": {"type": "string"}, "examples": values}


def link(method: str, path: str, *, body: Mapping[str, str] | None = None, **values: str) -> Link:
    """Return an OpenAPI link to another operation; its values are runtime expressions."""
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
    """Return an example error response of a contract for each status."""
    told: Responses = {}
    for status in statuses:
        told |= shown(status, error=fail(examples.ERRORS[status]))
        told[status] |= {"model": model, "description": _MEANING[status]}
    return told


def describe(
    app: FastAPI, contracts: Sequence[APIRouter], *, needs_key: bool = False
) -> dict[str, Any]:
    """Complete FastAPI's document: API keys, headers, readable names, full examples."""
    if app.openapi_schema is None:
        tags = [{"name": name, "description": said} for name, said in CONTRACTS.items()]
        tags.append({"name": "operations", "description": "For whoever runs the server."})
        described = get_openapi(
            title=app.title, version=app.version, description=_ABOUT, routes=app.routes, tags=tags
        )
        known: set[str] = set()
        for route, operation in _operations(described, contracts):
            _mend(operation, route)
            headers.declare(operation, route, needs_key=needs_key)
            operation["operationId"] = _operation_id(route, known)
        for path, operations in described["paths"].items():
            if operations.get("get", {}).get("tags") == ["operations"]:
                operations["get"]["operationId"] = f"operations_{path.strip('/')}"
        described = schemas.renamed(described)
        for path in ("/chat/run", "/chat/stream"):
            told = described["paths"][path]["post"]["responses"]["200"]["content"]
            told["text/event-stream"]["x-events"] = schemas.events()
        described["components"] |= {
            "headers": headers.RESPONSE_HEADERS,
            "securitySchemes": headers.SECURITY_SCHEMES,
        }
        app.openapi_schema = described
    return app.openapi_schema


def _operations(
    described: dict[str, Any], contracts: Sequence[APIRouter]
) -> Iterator[tuple[APIRoute, dict[str, Any]]]:
    for route in (route for router in contracts for route in router.routes):
        assert isinstance(route, APIRoute)
        for method in route.methods or ():
            yield route, described["paths"][route.path_format][method.lower()]


def _mend(operation: dict[str, Any], route: APIRoute) -> None:
    """Restore nulls that FastAPI drops from examples, which their schemas require."""
    for status, response in route.responses.items():
        for media_type, content in response.get("content", {}).items():
            operation["responses"][str(status)]["content"][media_type] |= content


def _operation_id(route: APIRoute, known: set[str]) -> str:
    """Return a name for generated clients; a second route of a function appends its path."""
    tag = str(route.tags[0])
    name = tag if route.name == tag else f"{tag}_{route.name}"
    if name in known:
        parts = [part for part in route.path_format.split("/") if part and "{" not in part]
        name = "_".join([name, "at", *parts])
    known.add(name)
    return name
