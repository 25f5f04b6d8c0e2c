"""Derive a table of contents (pages and headings) from passages in reading order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bythebook.types import Passage


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


@dataclass(slots=True)
class _Draft:
    first: Passage
    sections: dict[OutlineSection, None] = field(default_factory=dict)
    passages: int = 0
    words: int = 0


def page_key(passage: Passage) -> str:
    return passage.place.page_url or passage.place.file


def outline(passages: Iterable[Passage]) -> tuple[OutlineEntry, ...]:
    drafts: dict[str, _Draft] = {}
    for passage in passages:
        draft = drafts.setdefault(page_key(passage), _Draft(passage))
        if passage.place.section:
            draft.sections.setdefault(OutlineSection(passage.place.section, passage.place.url))
        draft.passages += 1
        draft.words += len(passage.text.split())
    return tuple(_leaf(url, draft) for url, draft in drafts.items())


def _leaf(url: str, draft: _Draft) -> OutlineEntry:
    place = draft.first.place
    return OutlineEntry(
        url=url,
        title=place.title,
        module=place.module,
        chapter=place.chapter,
        language=draft.first.metadata.language,
        sections=tuple(draft.sections),
        passages=draft.passages,
        words=draft.words,
    )
