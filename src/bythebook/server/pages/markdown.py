"""Routes of the book as Markdown: ``/llms.txt``, ``/llms-full.txt`` and ``/<page>.md``.

They never take a path from another route: a page whose Markdown would have the path of another
route is not served on its own, but it is part of ``/llms-full.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match, Route
from starlette.types import Scope

from bythebook.book import Book
from bythebook.documents.markdown.pages import (
    LIST,
    WHOLE,
    MarkdownPage,
    file_names,
    list_text,
    page_text,
    read_pages,
    relative_link,
    whole_text,
)
from bythebook.errors import NotFound
from bythebook.server.middleware import READER
from bythebook.server.static_files import READER_HEADERS, FileCache, StaticFile, render
from bythebook.text.outline import Contents, OutlineEntry

_HEADERS = {**READER_HEADERS, "X-Content-Type-Options": "nosniff"}
_PLAIN, _MARKDOWN = "text/plain", "text/markdown"


class MarkdownNames:
    """Names of the served Markdown files, kept for one generation."""

    def __init__(self) -> None:
        self._taken: Sequence[re.Pattern[str]] = ()
        self._generation = ""
        self._pages: Mapping[str, OutlineEntry] = {}
        self._names: Mapping[str, str] = {}

    def give_way_to(self, routers: Iterable[APIRouter]) -> None:
        """Leave their paths to these routes.

        The routes themselves would stay in memory as long as FastAPI remembers the functions of
        ours, which is for ever.
        """
        self._taken = [
            route.path_regex
            for router in routers
            for route in router.routes
            if isinstance(route, Route) and "GET" in (route.methods or ())
        ]

    def of(self, contents: Contents) -> Mapping[str, OutlineEntry]:
        """Return the pages by the names of their Markdown files."""
        if contents.generation != self._generation:
            self._pages = file_names(contents.pages)
            self._names = {page.url: name for name, page in self._pages.items()}
            self._generation = contents.generation
        return self._pages

    def name(self, contents: Contents, page: OutlineEntry) -> str | None:
        """Return the name of a page's Markdown file, or None if it is not served."""
        self.of(contents)
        name = self._names[page.url]
        return name if self.is_free(name) else None

    def is_free(self, name: str) -> bool:
        """Return whether no other route has the path of this file."""
        return not self.is_taken(f"/{name}")

    def is_taken(self, path: str) -> bool:
        """Return whether another route has this path."""
        return any(pattern.match(path) for pattern in self._taken)


def markdown_routes(book: Book, names: MarkdownNames) -> APIRouter:
    """Return the routes; they have the access rules and the rate limit of the reader."""

    class FreeRoute(APIRoute):
        def matches(self, scope: Scope) -> tuple[Match, Scope]:
            match, child = super().matches(scope)
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            if match is Match.FULL and names.is_taken(path):
                return Match.NONE, {}
            return match, child

    router = APIRouter(tags=[READER], route_class=FreeRoute, include_in_schema=False)
    files = FileCache()

    @router.get(f"/{LIST}")
    async def listed(request: Request) -> Response:
        opened = await book.contents()

        def link(page: MarkdownPage) -> str:
            return relative_link(page) if names.is_free(page.name) else page.url

        make = partial(_file_of_all, book, partial(list_text, link=link), _PLAIN)
        return await files.respond(request, opened.generation, LIST, make)

    @router.get(f"/{WHOLE}")
    async def whole(request: Request) -> Response:
        opened = await book.contents()
        make = partial(_file_of_all, book, whole_text, _MARKDOWN)
        return await files.respond(request, opened.generation, WHOLE, make)

    @router.get("/{path:path}.md")
    async def page(request: Request, path: str) -> Response:
        opened = await book.contents()
        entry = names.of(opened).get(f"{path}.md")
        if entry is None:
            raise NotFound("The book has no such page.", hint=f"Choose one from /{LIST}.")
        make = partial(_file_of_page, book, entry)
        return await files.respond(request, opened.generation, f"page {entry.url}", make)

    return router


async def _file_of_all(
    book: Book, show: Callable[[list[MarkdownPage]], str], media_type: str
) -> StaticFile:
    pages = [page async for page in read_pages(book)]
    return await render(lambda: StaticFile(show(pages), media_type, _HEADERS))


async def _file_of_page(book: Book, entry: OutlineEntry) -> StaticFile:
    _, passages = await book.section(entry.url)
    return await render(lambda: StaticFile(page_text(entry, passages), _MARKDOWN, _HEADERS))
