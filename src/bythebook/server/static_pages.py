"""Routes of the HTML pages (``/``, ``/read``, ``/admin``, ``/docs``) and their static files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from html import escape
from importlib.metadata import distribution
from pathlib import Path

from fastapi import APIRouter, Request, Response

from bythebook.config.settings import Settings
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
_STYLES = ("palette.css", "page.css", "base.css", "admin.css")
_SWAGGER_UI = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}

Page = Callable[[Request], Awaitable[Response]]


def page_routes(settings: Settings, *, needs_key: bool) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    for name in (*_SCRIPTS, *_STYLES):
        media_type = "text/css" if name.endswith(".css") else "text/javascript"
        router.add_api_route(
            f"/{name}", StaticFile(read_static(name), media_type, PAGE_HEADERS).respond
        )
    # Files of the wheel, located without importing its code.
    swagger_ui = Path(str(distribution("fastapi-swagger").locate_file("fastapi_swagger/resources")))
    for name, media_type in _SWAGGER_UI.items():
        file = StaticFile((swagger_ui / name).read_text("utf-8"), media_type, PAGE_HEADERS)
        router.add_api_route(f"/{name}", file.respond)
    key = settings.server.page_key or ""
    book = _page(lambda: read_static("index.html"), needs_key=needs_key, key=key)
    for path in ("/", "/read", "/read/{path:path}"):
        router.add_api_route(path, book)
    admin = _page(lambda: read_static("admin.html"), needs_key=needs_key)
    docs = _page(lambda: read_static("docs.html"), needs_key=needs_key)
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
