"""Routes of the HTML pages (``/``, ``/read``, ``/admin``, ``/docs``) and their static files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, lru_cache
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

from bythebook.config.settings import Settings
from bythebook.server.api_docs.page import contents, reference
from bythebook.server.static_file import StaticFile, read_static

# Pages load everything from this server; nothing else may run on them.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_SCRIPTS = ("page.js", "reader.js", "search.js", "copy.js", "dom.js", "admin.js", "docs.js")
_STYLES = ("palette.css", "page.css", "base.css", "admin.css", "docs.css")

Page = Callable[[Request], Awaitable[Response]]


def page_routes(
    settings: Settings, *, needs_key: bool, describe: Callable[[], dict[str, Any]]
) -> APIRouter:
    """Return the routes of all pages; ``describe`` returns the OpenAPI document."""
    router = APIRouter(include_in_schema=False)
    for name in (*_SCRIPTS, *_STYLES):
        media_type = "text/css" if name.endswith(".css") else "text/javascript"
        router.add_api_route(
            f"/{name}", StaticFile(read_static(name), media_type, PAGE_HEADERS).respond
        )
    key = settings.server.page_key or ""
    book = _page(lambda: read_static("index.html"), needs_key=needs_key, key=key)
    for path in ("/", "/read", "/read/{path:path}"):
        router.add_api_route(path, book)

    def api_reference() -> str:
        described = describe()
        html = read_static("docs.html").replace("{{contents}}", contents(described))
        return html.replace("{{reference}}", reference(described))

    admin = _page(lambda: read_static("admin.html"), needs_key=needs_key)
    docs = _page(cache(api_reference), needs_key=needs_key)
    for path, page in {"/admin": admin, "/docs": docs}.items():
        router.add_api_route(path, page)
        router.add_api_route(f"{path}/", page)
    return router


def _page(make: Callable[[], str], *, needs_key: bool, key: str = "") -> Page:
    """Return the endpoint of a page; its HTML is made at the first request."""

    @lru_cache(maxsize=16)
    def file(root: str) -> StaticFile:
        html = make().replace("{{keys}}", "needed" if needs_key and not key else "open")
        html = html.replace("{{key}}", escape(key)).replace("{{root}}", root)
        return StaticFile(html, "text/html", PAGE_HEADERS)

    async def page(request: Request) -> Response:
        # Relative, so that the page works behind a proxy with a path prefix.
        root = "../" * (request.scope["path"].count("/") - 1) or "./"
        return await file(root).respond(request)

    return page
