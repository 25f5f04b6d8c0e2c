"""The passages of a book in reading order in, its pages and their headings out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bythebook.model import Passage


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: its headings, and its address."""

    path: tuple[str, ...]
    url: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page as a table of contents knows it."""

    url: str  # where the book has none, the page's file
    title: str
    module: str
    chapter: str
    language: str
    sections: tuple[Section, ...]
    passages: int
    words: int


@dataclass(slots=True)
class _Draft:
    first: Passage
    sections: dict[Section, None] = field(default_factory=dict)
    passages: int = 0
    words: int = 0


def page_key(passage: Passage) -> str:
    return passage.place.page_url or passage.place.file


def outline(passages: Iterable[Passage]) -> tuple[Leaf, ...]:
    drafts: dict[str, _Draft] = {}
    for passage in passages:
        draft = drafts.setdefault(page_key(passage), _Draft(passage))
        if passage.place.section:
            draft.sections.setdefault(Section(passage.place.section, passage.place.url))
        draft.passages += 1
        draft.words += len(passage.text.split())
    return tuple(_leaf(url, draft) for url, draft in drafts.items())


def _leaf(url: str, draft: _Draft) -> Leaf:
    place = draft.first.place
    return Leaf(
        url=url,
        title=place.title,
        module=place.module,
        chapter=place.chapter,
        language=draft.first.metadata.language,
        sections=tuple(draft.sections),
        passages=draft.passages,
        words=draft.words,
    )
