"""API keys and headers in the OpenAPI document; their declarations are in ``headers.json``."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from fastapi.routing import APIRoute

_DATA: dict[str, Any] = json.loads(files(__package__).joinpath("headers.json").read_text("utf-8"))
SECURITY_SCHEMES: dict[str, Any] = _DATA["securitySchemes"]
REQUEST_HEADERS: dict[str, Any] = _DATA["request"]
RESPONSE_HEADERS: dict[str, Any] = _DATA["response"]

_ALWAYS = ("X-Request-Id", *(name for name in RESPONSE_HEADERS if name.startswith("RateLimit-")))
_OF_STATUS = {
    401: ("WWW-Authenticate",),
    429: ("Retry-After",),
    503: ("Retry-After", "X-Should-Retry"),
    504: ("Retry-After", "X-Should-Retry"),
}
_OF_POST = ("Idempotent-Replayed", "X-Degraded")


def declare(
    operation: dict[str, Any], route: APIRoute, *, needs_key: bool, is_resumable: bool
) -> None:
    """Add security requirements and request and response headers to an operation."""
    optional: list[dict[str, Any]] = [] if needs_key else [{}]
    operation["security"] = optional + [{name: []} for name in SECURITY_SCHEMES]
    is_post = "POST" in (route.methods or ())
    if not is_post:
        operation["responses"].pop("422", None)  # only POST accepts an Idempotency-Key
    else:
        names = ["Idempotency-Key", *(["Last-Event-ID"] if is_resumable else [])]
        operation.setdefault("parameters", []).extend(
            {"name": name, "in": "header", "required": False} | REQUEST_HEADERS[name]
            for name in names
        )
    for status, response in operation["responses"].items():
        of_post = _OF_POST if is_post and int(status) < 400 else ()
        names = [*_ALWAYS, *_OF_STATUS.get(int(status), of_post)]
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
