"""Routes of the reader: contents, pages, search by headings and text, suggested questions.

All responses but searches are constant within a generation: they are cached by the server, and
by browsers with an ETag (304).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, StringConstraints

from bythebook.book import Book
from bythebook.contracts.fields import Text
from bythebook.errors import NotFound, ServiceError
from bythebook.server.middleware import READER
from bythebook.server.pages.blocks import unit_id
from bythebook.server.pages.page import direction, page_view
from bythebook.server.pages.suggest import suggestions
from bythebook.server.static_files import (
    READER_HEADERS,
    FileCache,
    StaticFile,
    languages,
    read_static,
    render,
)
from bythebook.text.outline import Contents, OutlineEntry, path_of
from bythebook.text.text_fragments import folded
from bythebook.types import Answer, Hit, Passage, Question

_TITLES, _TEXTS = 5, 7  # limits of search results

Make = Callable[[], Awaitable[dict[str, Any]]]
NameOf = Callable[[Contents, OutlineEntry], str | None]  # of a page's Markdown, if it is served


class Search(BaseModel):
    text: Annotated[Text, StringConstraints(max_length=500)]


def book_routes(book: Book, markdown: NameOf) -> APIRouter:
    """Return the routes of the reader; ``markdown`` names the Markdown of a page."""
    router = APIRouter(tags=[READER], include_in_schema=False)
    files = FileCache()

    async def respond(request: Request, generation: str, name: str, make: Make) -> Response:
        async def file() -> StaticFile:
            made = await make()
            return await render(
                lambda: StaticFile(json.dumps(made), "application/json", READER_HEADERS)
            )

        return await files.respond(request, generation, name, file)

    @router.get("/reader/contents")
    async def contents(request: Request) -> Response:
        opened = await book.contents()
        make = partial(render, partial(_contents, opened))
        return await respond(request, opened.generation, "contents", make)

    @router.get("/reader/page")
    async def page(request: Request, path: str = "") -> Response:
        opened = await book.contents()
        number = _find_page(opened.pages, path)
        url = opened.pages[number].url

        async def make() -> dict[str, Any]:
            _, passages = await book.section(url)
            shown = await render(partial(_page, opened.pages, number, passages))
            name = markdown(opened, opened.pages[number])
            return {**shown, "markdown": name, "labels": _labels(shown["language"])}

        return await respond(request, opened.generation, f"page {url}", make)

    async def _is_answered(question: str) -> bool:
        return isinstance((await book.reply(Question(question))).outcome, Answer)

    @router.get("/reader/suggestions")
    async def first_questions(request: Request) -> Response:
        opened = await book.contents()

        async def make() -> dict[str, Any]:
            return {"questions": await suggestions(opened.pages, _is_answered)}

        return await respond(request, opened.generation, "suggestions", make)

    @router.post("/reader/search")
    async def search(body: Search) -> dict[str, Any]:
        opened = await book.contents()
        results = by_title(body.text, opened.pages, limit=_TITLES)
        try:
            found = await book.search(Question(body.text, top_k=_TEXTS, min_score=0.0))
            results += by_meaning(body.text, found.hits)
        except ServiceError:
            if not results:  # without text search, return title matches only
                raise
        return {"results": [asdict(result) | {"path": path_of(result.url)} for result in results]}

    return router


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


def _labels(language: str) -> dict[str, str]:
    """Return the labels of the page's own buttons, in its language or in English."""
    short = language.lower().partition("-")[0]
    words = json.loads(read_static(f"translations/{short if short in languages() else 'en'}.json"))
    return {"copyPage": words["copyPage"], "copied": words["copied"], "failed": words["broken"]}


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


# --- search ---------------------------------------------------------------------------------------


_LONGEST_SNIPPET = 240  # characters


@dataclass(frozen=True, slots=True)
class Found:
    """Search result; ``at`` is the id of an element on its page."""

    kind: str  # page, section, text
    title: str
    trail: str  # path of headings above it
    url: str  # of the page
    at: str
    snippet: str = ""


def by_title(wanted: str, pages: Sequence[OutlineEntry], *, limit: int) -> list[Found]:
    """Return pages, then sections, whose titles contain all words, as a whole or a prefix."""
    words = folded(wanted).split()
    if not words:
        return []
    found = sorted(_named(words, pages), key=lambda ranked: ranked[0])
    return [place for _, place in found[:limit]]


def _named(
    words: Sequence[str], pages: Sequence[OutlineEntry]
) -> Iterator[tuple[tuple[int, int], Found]]:
    for page in pages:
        rank = _rank(words, page.title)
        if rank is not None:
            yield (0, rank), Found("page", page.title, page.module, page.url, "")
        for section in page.sections:
            rank = _rank(words, section.path[-1])
            if rank is not None:
                anchor = section.url.partition("#")[2]
                trail = " › ".join((page.title, *section.path[:-1]))
                yield (1, rank), Found("section", section.path[-1], trail, page.url, anchor)


def _rank(words: Sequence[str], title: str) -> int | None:
    """Return the rank of a title, 0 is best; None unless each word is a prefix in the title."""
    own = folded(title).split()
    if not all(any(word.startswith(begun) for word in own) for begun in words):
        return None
    return 0 if own[: len(words)] == list(words) else 1


def by_meaning(wanted: str, hits: Sequence[Hit]) -> Iterator[Found]:
    words = folded(wanted).split()
    for hit in hits:
        place = hit.passage.place
        url = place.page_url or place.file
        unit = _best_unit(hit, words)
        if unit is None:
            continue
        snippet = _cut(hit.passage.unit_text(hit.passage.units[unit]))
        at = unit_id(hit.passage.id, unit)
        yield Found("text", place.heading, place.path, url, at, snippet)


def _best_unit(hit: Hit, words: Sequence[str]) -> int | None:
    """Return the unit with the most of the words; among equals, the one of highest cosine."""

    def fitness(number: int) -> tuple[int, float]:
        own = folded(hit.passage.unit_text(hit.passage.units[number])).split()
        having = sum(any(word.startswith(begun) for word in own) for begun in words)
        near = hit.unit_cosines[number] if number < len(hit.unit_cosines) else 0.0
        return having, near

    return max(range(len(hit.passage.units)), key=fitness, default=None)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SNIPPET else text[:_LONGEST_SNIPPET].rstrip() + "…"
