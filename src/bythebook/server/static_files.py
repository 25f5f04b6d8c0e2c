"""Serve unchanging content, compressed with gzip: pages, scripts, the widget.

The widget at ``/widget.js`` is for pages of any origin. Its styles are part of the script, which
constructs a stylesheet from them: one line embeds the widget, and a page's content security policy
has to allow nothing else.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, lru_cache
from html import escape
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from typing import TypeVar

from cachetools import LRUCache
from fastapi import APIRouter, Request, Response

from bythebook.config.settings import Settings

# Pages load everything from this server; nothing else may run on them.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
READER_HEADERS = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}
_WIDGET_HEADERS = {
    "Access-Control-Allow-Origin": "*",  # the same for all clients, and public
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
    "X-Content-Type-Options": "nosniff",
}
_SCRIPTS = ("page.js", "reader.js", "search.js", "copy.js", "dom.js", "admin.js", "docs.js")
_STYLES = ("palette.css", "page.css", "base.css", "admin.css")
_WIDGET_STYLES = ("palette.css", "widget.css")
_SWAGGER_UI = ("swagger-ui-bundle.js", "swagger-ui.css")
_FILES = resources.files("bythebook.server").joinpath("static")


def read_static(name: str) -> str:
    """Return the text of a file in ``static/``."""
    return _FILES.joinpath(name).read_text("utf-8")


@cache
def languages() -> list[str]:
    """List the languages of the widget: those with a file in ``translations``."""
    files = _FILES.joinpath("translations").iterdir()
    return sorted(file.name.removesuffix(".json") for file in files)


class StaticFile:
    """Content with an ETag; it is compressed at the first request and kept in both forms."""

    def __init__(self, content: str, media_type: str, headers: Mapping[str, str]) -> None:
        self.content = content.encode()
        self._media_type = media_type
        self._headers = {"Vary": "Accept-Encoding", **headers}
        self._digest = hashlib.sha256(self.content).hexdigest()[:32]

    @cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.content, mtime=0)

    async def respond(self, request: Request) -> Response:
        """Return the content, or 304 if the client has it in the form that it accepts."""
        is_gzip = _accepts_gzip(request.headers.get("accept-encoding", ""))
        # Both forms need an ETag of their own, as their bytes differ.
        tag = f'"{self._digest}-gzip"' if is_gzip else f'"{self._digest}"'
        headers = {**self._headers, "ETag": tag}
        cached = request.headers.get("if-none-match", "").split(",")
        if tag in (one.strip().removeprefix("W/") for one in cached):
            return Response(status_code=304, headers=headers)
        if is_gzip:
            headers["Content-Encoding"] = "gzip"
        content = self.compressed if is_gzip else self.content
        return Response(content, headers=headers, media_type=self._media_type)


def _accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding allows gzip: by name, else by ``*``, with a weight > 0."""
    weights = {}
    for part in header.lower().split(","):
        name, _, parameter = part.partition(";")
        weights[name.strip()] = parameter.partition("=")[2].strip() or "1"
    return weights.get("gzip", weights.get("*", "0")).strip("0.") != ""


def static_routes(settings: Settings, *, needs_key: bool) -> APIRouter:
    """Return the routes of ``/``, ``/read``, ``/admin``, ``/docs``, their files and the widget."""
    router = APIRouter(include_in_schema=False)
    texts = {name: read_static(name) for name in (*_SCRIPTS, *_STYLES)}
    # Files of the wheel, located without importing its code.
    swagger_ui = Path(str(distribution("fastapi-swagger").locate_file("fastapi_swagger/resources")))
    texts |= {name: (swagger_ui / name).read_text("utf-8") for name in _SWAGGER_UI}
    files = {
        name: StaticFile(text, _media_type(name), PAGE_HEADERS) for name, text in texts.items()
    }
    files["widget.js"] = StaticFile(widget_script(), "text/javascript", _WIDGET_HEADERS)
    for name in languages():
        words = read_static(f"translations/{name}.json")
        files[f"widget/{name}.json"] = StaticFile(words, "application/json", _WIDGET_HEADERS)
    for name, file in files.items():
        router.add_api_route(f"/{name}", file.respond)
    key = settings.server.page_key or ""
    book = _page("index.html", needs_key=needs_key, key=key)
    admin = _page("admin.html", needs_key=needs_key)
    docs = _page("docs.html", needs_key=needs_key)
    paths = {"/": book, "/read": book, "/read/{path:path}": book}
    paths |= {"/admin": admin, "/admin/": admin, "/docs": docs, "/docs/": docs}
    for path, page in paths.items():
        router.add_api_route(path, page)
    return router


def _media_type(name: str) -> str:
    return "text/css" if name.endswith(".css") else "text/javascript"


def _page(name: str, *, needs_key: bool, key: str = "") -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a page; its HTML is made at the first request."""

    @lru_cache(maxsize=16)
    def file(root: str) -> StaticFile:
        keys = "needed" if needs_key and not key else "open"
        html = read_static(name).replace("{{keys}}", keys)
        html = html.replace("{{key}}", escape(key)).replace("{{root}}", root)
        return StaticFile(html, "text/html", PAGE_HEADERS)

    async def page(request: Request) -> Response:
        # Relative, so that the page works behind a proxy with a path prefix.
        root = "../" * (request.scope["path"].count("/") - 1) or "./"
        return await file(root).respond(request)

    return page


def widget_script() -> str:
    """Return the script with its styles, English texts and list of languages."""
    parts = {
        "styles": "".join(map(read_static, _WIDGET_STYLES)),
        "words": json.loads(read_static("translations/en.json")),
        "languages": languages(),
    }
    script = read_static("widget.js")
    for name, part in parts.items():
        placeholder = f'"{{{{{name}}}}}"'
        assert script.count(placeholder) == 1, name
        script = script.replace(placeholder, json.dumps(part, ensure_ascii=False))
    return script


# --- files made on demand -------------------------------------------------------------------------


T = TypeVar("T")

_CACHED = 256  # responses
# Threads that no question needs: two, so that other pages do not wait for one long page.
_RENDERING = ThreadPoolExecutor(2, "rendering")


async def render(work: Callable[[], T]) -> T:
    """Run the work on a thread for pages and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_RENDERING, work)


class FileCache:
    """Responses by generation and name; each has an ETag, and is made once for all who wait."""

    def __init__(self) -> None:
        self._files: LRUCache[tuple[str, str], StaticFile] = LRUCache(_CACHED)
        self._making: dict[tuple[str, str], asyncio.Task[StaticFile]] = {}

    async def respond(
        self,
        request: Request,
        generation: str,
        name: str,
        make: Callable[[], Awaitable[StaticFile]],
    ) -> Response:
        key = generation, name
        file = self._files.get(key)
        if file is None:
            if key not in self._making:
                self._making[key] = asyncio.create_task(self._make(key, make))
            file = await asyncio.shield(self._making[key])  # goes on if those who wait leave
        return await file.respond(request)

    async def _make(
        self, key: tuple[str, str], make: Callable[[], Awaitable[StaticFile]]
    ) -> StaticFile:
        try:
            file = self._files[key] = await make()
            await render(lambda: file.compressed)  # not on the event loop, which would stand still
            return file
        finally:
            del self._making[key]
