"""Routes of the reader: contents, pages, search and suggested questions.

All responses but searches are constant within a generation: they are cached by the server, and
by browsers with an ETag (304).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, StringConstraints

from bythebook import __version__
from bythebook.book import Book, Contents
from bythebook.chunking.outline import OutlineEntry
from bythebook.errors import BookError, NotFound, ServiceError
from bythebook.server.contracts.wire_types import Call, sentence_of, status_of
from bythebook.server.middleware.rate_limit import READER
from bythebook.server.reader.find import by_meaning, by_title
from bythebook.server.reader.page import direction, page_view
from bythebook.server.reader.suggest import suggestions
from bythebook.server.routes import contract_route
from bythebook.types import Answer, Passage, Question

_KEPT = 256  # cached responses
_TITLES, _TEXTS = 5, 7  # limits of search results

Make = Callable[[], Awaitable[dict[str, Any]]]


class ReaderError(BaseModel):
    message: str


def fail(error: BookError, _: Call | None = None, /) -> tuple[int, ReaderError]:
    return status_of(error), ReaderError(message=sentence_of(error))


class Search(BaseModel):
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


def reader_routes(library: Book) -> APIRouter:
    router = APIRouter(tags=[READER], route_class=contract_route(fail), include_in_schema=False)
    made = _Made(library)

    @router.get("/reader/contents")
    async def contents(request: Request) -> Response:
        book = await library.contents()

        async def make() -> dict[str, Any]:
            return _contents(book)

        return await made.once(request, book, "contents", make)

    @router.get("/reader/page")
    async def page(request: Request, path: str = "") -> Response:
        book = await library.contents()
        number = _find_page(book.pages, path)
        url = book.pages[number].url

        async def make() -> dict[str, Any]:
            _, passages = await library.section(url)
            return await asyncio.to_thread(_page, book.pages, number, passages)

        return await made.once(request, book, f"page {url}", make)

    @router.get("/reader/suggestions")
    async def first_questions(request: Request) -> Response:
        book = await library.contents()

        async def make() -> dict[str, Any]:
            return {"questions": await made.suggestions(book)}

        return await made.once(request, book, "suggestions", make)

    @router.post("/reader/search")
    async def search(body: Search) -> dict[str, Any]:
        book = await library.contents()
        places = by_title(body.text, book.pages, limit=_TITLES)
        try:
            found = await library.search(Question(body.text, top_k=_TEXTS))
            places += by_meaning(body.text, found.hits)
        except ServiceError:
            if not places:  # without text search, return title matches only
                raise
        return {"results": [asdict(each) | {"path": path_of(each.url)} for each in places]}

    return router


def path_of(url: str) -> str:
    """Return the path of a page within the reader: /read/<path>."""
    return unquote(urlsplit(url).path).strip("/")


class _Made:
    """Cache of the responses of a generation, by their ETag."""

    def __init__(self, library: Book) -> None:
        self._library = library
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._suggested: tuple[str, asyncio.Task[list[str]]] | None = None  # and its generation

    async def once(self, request: Request, book: Contents, name: str, make: Make) -> Response:
        tag = f'"{_digest(f"{book.generation} {__version__} {name}")}"'
        headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = self._kept.get(tag)
        if body is None:
            body = self._kept[tag] = json.dumps(await make()).encode()
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return Response(body, media_type="application/json", headers=headers)

    async def suggestions(self, book: Contents) -> list[str]:
        """Return suggested questions; one shared task, as it asks the book each candidate."""
        generation, task = self._suggested or ("", None)
        if task is None or generation != book.generation or _has_failed(task):
            task = asyncio.create_task(suggestions(book.pages, self._is_answered))
            self._suggested = book.generation, task
        return await asyncio.shield(task)

    async def _is_answered(self, question: str) -> bool:
        reply = await self._library.reply(Question(question))
        return isinstance(reply.outcome, Answer)


def _has_failed(task: asyncio.Task[list[str]]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _contents(book: Contents) -> dict[str, Any]:
    pages = book.pages
    parts = [
        {"title": module, "language": language, "pages": [_entry(page) for page in part]}
        for (module, language), part in groupby(pages, key=lambda p: (p.module, p.language))
    ]
    return {
        "generation": book.generation,
        "title": pages[0].title if pages else "",
        "language": pages[0].language if pages else "en",
        "pages": len(pages),
        "words": sum(page.words for page in pages),
        "parts": parts,
    }


def _entry(page: OutlineEntry) -> dict[str, Any]:
    return {"path": path_of(page.url), "title": page.title}


def _find_page(pages: Sequence[OutlineEntry], path: str) -> int:
    """Return the number of the page with this path; without a path, the first page."""
    wanted = path.strip("/")
    for number, page in enumerate(pages):
        if not wanted or path_of(page.url) == wanted:
            return number
    raise NotFound("The book has no such page.", hint="Choose one from the contents.")


def _page(
    pages: Sequence[OutlineEntry], number: int, passages: Sequence[Passage]
) -> dict[str, Any]:
    page = pages[number]
    view = page_view(passages)
    return {
        "path": path_of(page.url),
        "url": page.url,
        "title": page.title,
        "module": page.module,
        "language": page.language,
        "direction": direction(page.language),
        "html": view.html,
        "headings": [asdict(heading) for heading in view.headings],
        "previous": _entry(pages[number - 1]) if number else None,
        "next": _entry(pages[number + 1]) if number + 1 < len(pages) else None,
    }
