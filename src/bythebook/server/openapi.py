"""Build the OpenAPI document at ``/openapi.json``, with examples computed by the contracts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from bythebook.server.contracts.base import StreamEvent
from bythebook.server.contracts.registry import CONTRACTS
from bythebook.server.sse import MEDIA_TYPE

_ABOUT = (
    "Ask a book. Five contracts and OpenAI's give the same answers; use the one that your client "
    "supports. If the server requires keys, send one as `Authorization: Bearer btk_…` or as "
    "`X-API-Key: btk_…`. Every response has an `X-Request-Id`."
)
_REF = "#/components/schemas/{model}"

# Declarations of API keys and headers.
_HEADERS: dict[str, Any] = json.loads(
    files(__package__).joinpath("headers.json").read_text("utf-8")
)

_ALWAYS = (
    "X-Request-Id",
    *(name for name in _HEADERS["response"] if name.startswith("RateLimit-")),
)
_OF_STATUS = {
    401: ("WWW-Authenticate",),
    429: ("Retry-After",),
    503: ("Retry-After", "X-Should-Retry"),
    504: ("Retry-After", "X-Should-Retry"),
}
_OF_POST = ("Idempotent-Replayed", "X-Degraded")


def describe(
    app: FastAPI, routers: Sequence[APIRouter], *, needs_key: bool = False
) -> dict[str, Any]:
    """Complete FastAPI's document: API keys, headers, stream events, full examples."""
    tags = [{"name": c.name, "description": c.about} for c in CONTRACTS.values()]
    tags.append({"name": "operations", "description": "For the operator of the server."})
    described = get_openapi(
        title=app.title, version=app.version, description=_ABOUT, routes=app.routes, tags=tags
    )
    described = _by_title(described)
    ids: set[str] = set()
    for route in (route for router in routers for route in router.routes):
        assert isinstance(route, APIRoute)
        [method] = sorted(route.methods or ())
        operation = described["paths"][route.path_format][method.lower()]
        events = CONTRACTS[str(route.tags[0])].events
        _restore_nulls(operation, route)
        stream = operation["responses"].get("200", {}).get("content", {}).get(MEDIA_TYPE)
        is_resumable = stream is not None and bool(events)
        _declare_headers(operation, route, needs_key=needs_key, is_resumable=is_resumable)
        if is_resumable:
            stream["x-events"] = [_event(event) for event in events]
        operation["operationId"] = _operation_id(route, ids)
    for path, operations in described["paths"].items():
        if operations.get("get", {}).get("tags") == ["operations"]:
            operations["get"]["operationId"] = f"operations_{path.strip('/')}"
    models = [event.data for contract in CONTRACTS.values() for event in contract.events]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in models], ref_template=_REF
    )
    told = _by_title({"components": {"schemas": schemas["$defs"]}})["components"]
    schemas = told["schemas"] | described["components"]["schemas"]
    described["components"] |= {
        "schemas": dict(sorted(schemas.items())),
        "headers": _HEADERS["response"],
        "securitySchemes": _HEADERS["securitySchemes"],
    }
    return described


def _event(event: StreamEvent) -> dict[str, Any]:
    """Return an event of a stream, with a reference to the schema of its data."""
    data = {"$ref": _REF.format(model=event.data.model_json_schema()["title"])}
    return {"event": event.name, "occurs": event.occurs, "data": data}


def _by_title(described: dict[str, Any]) -> dict[str, Any]:
    """Name each schema by its title, which names its contract, and not by its Python module."""
    schemas = described["components"]["schemas"]
    titles = {name: schema.get("title", name) for name, schema in schemas.items()}
    described["components"]["schemas"] = {titles[name]: each for name, each in schemas.items()}
    named = re.sub(
        r'(?<="#/components/schemas/)\w+', lambda ref: titles[ref[0]], json.dumps(described)
    )
    renamed: dict[str, Any] = json.loads(named)
    return renamed


def _declare_headers(
    operation: dict[str, Any], route: APIRoute, *, needs_key: bool, is_resumable: bool
) -> None:
    """Add security requirements and request and response headers to an operation."""
    optional: list[dict[str, Any]] = [] if needs_key else [{}]
    operation["security"] = optional + [{name: []} for name in _HEADERS["securitySchemes"]]
    is_post = "POST" in (route.methods or ())
    if not is_post:
        operation["responses"].pop("422", None)  # only POST accepts an Idempotency-Key
    else:
        names = ["Idempotency-Key", *(["Last-Event-ID"] if is_resumable else [])]
        operation.setdefault("parameters", []).extend(
            {"name": name, "in": "header", "required": False} | _HEADERS["request"][name]
            for name in names
        )
    for status, response in operation["responses"].items():
        of_post = _OF_POST if is_post and int(status) < 400 else ()
        names = [*_ALWAYS, *_OF_STATUS.get(int(status), of_post)]
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _restore_nulls(operation: dict[str, Any], route: APIRoute) -> None:
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
