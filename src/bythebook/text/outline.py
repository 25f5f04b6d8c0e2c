"""Derive a table of contents (pages and headings) from passages in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from bythebook.types import Passage, Place


@dataclass(frozen=True, slots=True)
class OutlineSection:
    """Section of a page: heading path and URL."""

    path: tuple[str, ...]
    url: str


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """Page entry of the table of contents."""

    url: str  # the file name if the page has no URL
    title: str
    module: str
    chapter: str
    language: str
    sections: tuple[OutlineSection, ...]
    passages: int
    words: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Table of contents of one generation, in reading order."""

    generation: str
    pages: tuple[OutlineEntry, ...]
    passages: Mapping[str, Sequence[str]]  # passage ids by the url of a section or page


def page_key(passage: Passage) -> str:
    return passage.place.page_url or passage.place.file


def path_of(url: str) -> str:
    """Return the path of a page's URL, decoded and without slashes around it.

    The query is part of it: the chapters of a PDF file differ in nothing else.
    """
    parts = urlsplit(url)
    path = unquote(parts.path).strip("/")
    return f"{path}?{unquote(parts.query)}" if parts.query else path


class HeadingTrail:
    """Headings of a page that have been shown, to show each one once."""

    def __init__(self) -> None:
        self._shown: set[tuple[tuple[str, ...], str | None]] = set()  # with any anchor: None
        self._last: tuple[str, ...] = ()

    def new(self, place: Place) -> Iterator[tuple[int, str, str]]:
        """Yield depth, text and anchor of the headings above a place that are not yet shown.

        The last one has the anchor of the place, the others have none. A section that goes on at
        another position, such as the next page of a PDF file, has no new headings.
        """
        goes_on = place.has_position and place.section == self._last
        self._last = place.section
        if goes_on:
            return
        for depth, text in enumerate(place.section, 1):
            path = place.section[:depth]
            is_last = depth == len(place.section)
            anchor = place.url.partition("#")[2] if is_last else ""
            if (path, anchor if is_last else None) in self._shown:
                continue
            self._shown |= {(path, anchor), (path, None)}
            yield depth, text, anchor


def outline(passages: Iterable[Passage]) -> tuple[OutlineEntry, ...]:
    pages: dict[str, list[Passage]] = {}
    for passage in passages:
        pages.setdefault(page_key(passage), []).append(passage)
    return tuple(_entry(url, group) for url, group in pages.items())


def _entry(url: str, passages: Sequence[Passage]) -> OutlineEntry:
    first = passages[0]
    places = [passage.place for passage in passages if passage.place.section]
    return OutlineEntry(
        url=url,
        title=first.place.title,
        module=first.place.module,
        chapter=first.place.chapter,
        language=first.metadata.language,
        sections=tuple(_sections(places)),
        passages=len(passages),
        words=sum(len(passage.text.split()) for passage in passages),
    )


def _sections(places: Iterable[Place]) -> Iterator[OutlineSection]:
    """Yield each section once; one that goes on at another position is still the same."""
    seen: set[OutlineSection] = set()
    last: tuple[str, ...] | None = None
    for place in places:
        section = OutlineSection(place.section, place.url)
        if section not in seen and not (place.section == last and place.has_position):
            yield section
        seen.add(section)
        last = place.section


def list_contents(generation: str, passages: Sequence[Passage]) -> Contents:
    """Return the table of contents of passages in reading order."""
    ids: dict[str, list[str]] = {}
    for passage in sorted(passages, key=lambda passage: passage.position):
        for url in {passage.place.url, page_key(passage)}:
            ids.setdefault(url, []).append(passage.id)
    return Contents(generation, outline(passages), ids)
