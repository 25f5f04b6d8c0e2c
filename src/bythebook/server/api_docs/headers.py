"""OpenAPI declarations of the API keys and headers of the contracts' routes."""

from __future__ import annotations

from typing import Any

from fastapi.routing import APIRoute

SECURITY_SCHEMES: dict[str, Any] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of this server: `Authorization: Bearer btk_…`",
    },
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same key in a header of its own: `X-API-Key: btk_…`",
    },
}
_ANY_KEY: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKey": []}]


def _header(said: str, **schema: object) -> dict[str, Any]:
    return {"description": said, "schema": {"type": "string", **schema}}


def _number(said: str) -> dict[str, Any]:
    return _header(said, type="integer", minimum=0)


RESPONSE_HEADERS: dict[str, Any] = {
    "X-Request-Id": _header("The request's id, as in the server's log") | {"required": True},
    "RateLimit-Policy": _header(
        'What is counted, how many are allowed (q) in how many seconds (w): `"key";q=100;w=60`. '
        "Like the other three, not sent where nothing is counted"
    ),
    "RateLimit-Limit": _number("How many requests are allowed a minute"),
    "RateLimit-Remaining": _number("How many are left"),
    "RateLimit-Reset": _number("Seconds until more are allowed"),
    "Retry-After": _number("Seconds to wait before the next try, where that is known"),
    "X-Should-Retry": _header("The same request will fail again", enum=["false"]),
    "WWW-Authenticate": _header("How to send a key", enum=["Bearer"]),
    "Idempotent-Replayed": _header(
        "The reply was kept from the first request with this `Idempotency-Key`", enum=["true"]
    ),
    "X-Degraded": _header(
        "The book was searched by keywords alone, because the embedder or the vector index is "
        "unavailable or still being built",
        enum=["keyword-search"],
    ),
}
_LIMITS = ("RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")

IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name for this request, such as a UUID. Sent again within 24 hours with the "
    "same request, it brings the same reply; with another one, 422",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
LAST_EVENT_ID: dict[str, Any] = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Resume a stream: the id of the last event that arrived. What came after it "
    "is sent, within two minutes of the end; afterwards 404. The body is sent as before",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}\\.[0-9]{1,9}$"},
}


def declare(operation: dict[str, Any], route: APIRoute, *, needs_key: bool) -> None:
    """Add security requirements and request and response headers to an operation."""
    operation["security"] = [*([] if needs_key else [{}]), *_ANY_KEY]
    posts = "POST" in (route.methods or ())
    if posts:
        parameters = operation.setdefault("parameters", [])
        parameters.append(IDEMPOTENCY_KEY)
        if "text/event-stream" in _kinds(operation) and route.tags[0] == "chat":
            parameters.append(LAST_EVENT_ID)
    else:
        operation["responses"].pop("422", None)  # only POST accepts an Idempotency-Key
    for status, response in operation["responses"].items():
        names = ["X-Request-Id", *_LIMITS, *_of_status(int(status), posts=posts)]
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _kinds(operation: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = operation["responses"].get("200", {}).get("content", {})
    return kinds


def _of_status(status: int, *, posts: bool) -> tuple[str, ...]:
    if status < 400:
        return ("Idempotent-Replayed", "X-Degraded") if posts else ()
    if status == 401:
        return ("WWW-Authenticate",)
    if status == 429:
        return ("Retry-After",)
    return ("Retry-After", "X-Should-Retry") if status >= 500 else ()
