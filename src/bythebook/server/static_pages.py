"""Routes of the HTML pages (``/``, ``/read``, ``/admin``, ``/docs``) and their static files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request, Response

from bythebook.config.settings import Settings
from bythebook.server.api_docs.page import contents, reference

# Pages load everything from this server; nothing else may run on them.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_KINDS = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
_FILES = (
    *("palette.css", "page.css", "page.js", "reader.js", "search.js", "dom.js"),
    *("admin.css", "admin.js", "docs.css", "docs.js"),
)

Page = Callable[[Request], Response]
Describe = Callable[[], dict[str, Any]]


def page_routes(settings: Settings, *, needs_key: bool, describe: Describe) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    for name in _FILES:
        router.add_api_route(f"/{name}", _file(name))
    index, admin = _read("index.html"), _read("admin.html")
    page = _shell(index, needs_key=needs_key, key=settings.server.page_key or "")
    for path in ("/", "/read", "/read/{path:path}"):
        router.add_api_route(path, page)
    router.add_api_route("/admin", _shell(admin, needs_key=needs_key))
    router.add_api_route("/docs", _api(needs_key=needs_key, describe=describe))
    return router


def _read(name: str) -> str:
    return resources.files("bythebook.server").joinpath("static", name).read_text("utf-8")


def _file(name: str) -> Page:
    content = _read(name)
    kind = _KINDS[name.rpartition(".")[2]]

    def file(request: Request) -> Response:
        return _answer(request, content, kind)

    return file


def _shell(html: str, *, needs_key: bool, key: str = "") -> Page:
    html = html.replace("{{keys}}", "needed" if needs_key and not key else "open")
    html = html.replace("{{key}}", escape(key))

    def shell(request: Request) -> Response:
        # Relative, so that the page works behind a proxy with a path prefix.
        root = "../" * (request.scope["path"].count("/") - 1) or "./"
        return _answer(request, html.replace("{{root}}", root), "text/html")

    return shell


def _api(*, needs_key: bool, describe: Describe) -> Page:
    """Return the page of the API reference, rendered from OpenAPI at the first request."""

    @cache
    def shell() -> Page:
        described = describe()
        html = _read("docs.html").replace("{{contents}}", contents(described))
        return _shell(html.replace("{{reference}}", reference(described)), needs_key=needs_key)

    def api(request: Request) -> Response:
        return shell()(request)

    return api


def _answer(request: Request, content: str, kind: str) -> Response:
    tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:24]}"'
    headers = {**_HEADERS, "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=headers)
