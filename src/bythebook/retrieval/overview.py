"""Find the passages that introduce the book or one of its parts, from its table of contents.

A question such as "Summarize module 2" is not answered by the passages most similar to it, but by
the introduction of that module, its learning objectives and its list of chapters. "What does the
book say about X?" is answered by the section that has the heading X, if there is just one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bythebook.interfaces.store import PassageStore
from bythebook.language.english.overview_questions import (
    is_whole_book,
    name_of_part,
    numbered_part,
    numbered_path,
    overview_topic,
    subject_of_book,
)
from bythebook.language.terms import term_ids
from bythebook.text.outline import Contents, OutlineEntry, path_of
from bythebook.text.text_fragments import folded
from bythebook.types import Hit, Passage

_SCORE = 0.9  # of a passage that introduces its page
_SCORE_OF_OTHERS = 0.6  # of the other passages of the page
_MOST_WORDS = 150  # of introductions, for other passages to be added
_MOST_PASSAGES = 12
_FEWEST_WORDS = 60  # of a page that introduces a part
_MOST_PAGES = 3
_INTRODUCES = re.compile(
    r"\b(overview|introduction|intro|about|learn|objectives|outcomes|goals|organi[sz]ed|structure|"
    r"contents|chapters|modules|sections|syllabus|summary|roadmap|at a glance)\b",
    re.IGNORECASE,
)


async def find_overview(question: str, contents: Contents, store: PassageStore) -> tuple[Hit, ...]:
    """Return hits that introduce what the question asks an overview of, introductions first.

    There are none if it asks for something else, or for a part that the book does not have.
    """
    topic, subject = overview_topic(question), subject_of_book(question)
    pages = _pages(topic, contents.pages) if topic else []
    if pages:
        return _hits(_scored(await _passages(pages, contents, store)))
    if subject and (found := _section(subject, contents.pages)):
        page, path = found
        return _hits(_scored_section(await _passages([page], contents, store), path))
    return ()


def asks_overview(question: str) -> bool:
    """Return whether ``find_overview`` may find something, judged by the question alone."""
    return overview_topic(question) is not None or subject_of_book(question) is not None


async def _passages(
    pages: Sequence[OutlineEntry], contents: Contents, store: PassageStore
) -> list[Passage]:
    """Return the passages of the pages in reading order."""
    ids = [name for page in pages for name in contents.passages.get(page.url, ())]
    order = {name: number for number, name in enumerate(ids)}
    entries = sorted(await store.fetch(ids), key=lambda entry: order[entry.passage.id])
    return [entry.passage for entry in entries]


def _hits(scored: Sequence[tuple[Passage, float]]) -> tuple[Hit, ...]:
    return tuple(
        Hit(passage, rank, cosine=0.0, score=score, answers=score)
        for rank, (passage, score) in enumerate(scored[:_MOST_PASSAGES], 1)
    )


def _section(
    heading: str, pages: Sequence[OutlineEntry]
) -> tuple[OutlineEntry, tuple[str, ...]] | None:
    """Return the only section with this heading: its page and heading path; None if unclear."""
    wanted = folded(heading)
    found = [
        (page, section.path)
        for page in pages
        for section in page.sections
        if wanted and folded(section.path[-1]) == wanted
    ]
    return found[0] if len(found) == 1 else None


def _scored_section(
    passages: Sequence[Passage], path: tuple[str, ...]
) -> list[tuple[Passage, float]]:
    """Return the passages of the section, then those of the sections below it."""
    own = [passage for passage in passages if passage.place.section == path]
    below = [
        passage
        for passage in passages
        if passage.place.section[: len(path)] == path and passage not in own
    ]
    return [*((p, _SCORE) for p in own), *((p, _SCORE_OF_OTHERS) for p in below)]


def _pages(topic: str, pages: Sequence[OutlineEntry]) -> list[OutlineEntry]:
    """Return the pages to read: of the whole book or of a module, only the first ones."""
    if is_whole_book(topic):
        return list(pages[:1])
    label, path = numbered_part(topic), numbered_path(topic)
    if label is not None and path is not None:
        titled = [page for page in pages if label.search(page.title)]
        inside = [page for page in pages if label.search(page.chapter) or label.search(page.module)]
        named = [page for page in pages if path.search(path_of(page.url).lower())]
        return _first([*(page for page in inside if page in titled), *inside] or titled or named)
    wanted = set(term_ids(name_of_part(topic)))
    for name in ("title", "chapter", "module"):
        named = [page for page in pages if wanted and wanted <= set(term_ids(getattr(page, name)))]
        if named:
            shortest = min(named, key=lambda page: len(getattr(page, name)))
            label_of = getattr(shortest, name)
            return _first([page for page in named if getattr(page, name) == label_of])
    return []


def _first(pages: Sequence[OutlineEntry]) -> list[OutlineEntry]:
    """Return the first page; if it says little, also the next ones."""
    chosen: list[OutlineEntry] = []
    for page in dict.fromkeys(pages):
        chosen.append(page)
        if sum(each.words for each in chosen) >= _FEWEST_WORDS or len(chosen) == _MOST_PAGES:
            break
    return chosen


def _scored(passages: Sequence[Passage]) -> list[tuple[Passage, float]]:
    """Return the passages that introduce their page; if they say little, also the other ones."""
    introducing = [
        passage
        for passage in passages
        if not passage.place.section or _INTRODUCES.search(passage.place.heading)
    ]
    words = sum(len(passage.text.split()) for passage in introducing)
    others = [] if words >= _MOST_WORDS else [p for p in passages if p not in introducing]
    return [*((p, _SCORE) for p in introducing), *((p, _SCORE_OF_OTHERS) for p in others)]
