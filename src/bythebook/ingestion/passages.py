"""Split the block tree of a page into passages: the content of one heading each, or part of it.

A passage is plain text as a reader sees it, small enough to embed and to display, with the URL of
its heading.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bythebook.ingestion.render import render
from bythebook.ingestion.section_packing import TextChunk, pack
from bythebook.interfaces.blocks import Anchor, Block, Box, Document, Heading, Paragraph
from bythebook.sources.documents import plain_text
from bythebook.text.markdown import cut_at_units
from bythebook.text.selections import content_hash
from bythebook.text.text_fragments import with_fragments
from bythebook.text.text_kinds import with_text_kinds
from bythebook.text.units import split_units
from bythebook.types import Metadata, Passage, Place

MAX_TOKENS = 500


@dataclass(frozen=True, slots=True)
class PageSection:
    """Heading path and the blocks directly below its last heading."""

    path: tuple[Heading, ...]
    blocks: list[Block]
    position: str | None = None  # anchor after the last heading

    @property
    def anchor(self) -> str | None:
        if self.position is not None:
            return self.position
        return next((heading.anchor for heading in reversed(self.path) if heading.anchor), None)


def passages_of(
    document: Document,
    place: Place,
    metadata: Metadata,
    *,
    max_tokens: int = MAX_TOKENS,
    fragments: bool = True,
) -> tuple[Passage, ...]:
    """Return the passages of a page in reading order. ``place`` is that of the page."""
    passages: list[Passage] = []
    seen: dict[tuple[tuple[str, ...], str], int] = {}
    sections = list(_with_words(sections_of(document.blocks, place.title)))
    if not sections and document.headings:
        heading = document.headings[0]  # a page with only a title still gets one passage
        sections = [PageSection((), [Paragraph(heading.text, heading.span)])]
    for section in sections:
        path = tuple(str(heading.text) for heading in section.path)
        url = f"{place.url}#{section.anchor}" if section.anchor else place.url
        here = replace(place, section=path, url=url)
        for chunk in pack(render(section.blocks), max_tokens):
            count = seen[path, chunk.text] = seen.get((path, chunk.text), -1) + 1
            passages.append(_passage(chunk, here, metadata, len(passages), count))
    passages = _with_neighbours(passages)
    return with_fragments(passages) if fragments else tuple(passages)


def _with_neighbours(passages: Sequence[Passage]) -> list[Passage]:
    """Set the ids of the previous and next passage under the same heading."""
    beside = zip([None, *passages], passages, [*passages[1:], None], strict=False)
    return [
        replace(
            passage,
            neighbours=tuple(
                other.id
                for other in (before, after)
                if other is not None and other.place == passage.place
            ),
        )
        for before, passage, after in beside
    ]


def _passage(
    chunk: TextChunk, place: Place, metadata: Metadata, position: int, copy: int
) -> Passage:
    units = split_units(chunk.text, chunk.marks)
    passage = Passage(
        id=passage_id(place.file, place.section, chunk.text, copy),
        text=chunk.text,
        place=place,
        position=position,
        content_hash=content_hash(chunk.text),
        metadata=replace(metadata, has_code=chunk.has_code),
        units=units,
        source=chunk.span,
        tokens=chunk.tokens,
        continues=chunk.continues,
        marks=cut_at_units(chunk.text, chunk.marks, units),
    )
    return with_text_kinds(passage, chunk.boxes)


def passage_id(file: str, section: Sequence[str], text: str, copy: int) -> str:
    """Return a machine-independent id: no absolute path, position or line ending affects it."""
    return content_hash(json.dumps([file, list(section), text, copy], ensure_ascii=False))


# --- sections -------------------------------------------------------------------------------------


def sections_of(blocks: Sequence[Block], title: str) -> list[PageSection]:
    """Split a page at its headings. A leading H1 is the page title and starts no section."""
    collector = _Collector()
    first = next((block for block in blocks if isinstance(block, Heading)), None)
    for block in blocks:
        if block is first and first.level == 1:
            if " ".join(first.text.split()) != " ".join(title.split()):
                collector.add(Paragraph(first.text, first.span))
        else:
            collector.visit(block)
    return collector.sections


class _Collector:
    def __init__(self) -> None:
        self._path: tuple[Heading, ...] = ()
        self._position: str | None = None
        self.sections = [PageSection((), [])]

    def add(self, block: Block) -> None:
        last = self.sections[-1]
        if last.path is not self._path or last.position != self._position:
            self.sections.append(PageSection(self._path, [], self._position))
        self.sections[-1].blocks.append(block)

    def visit(self, block: Block) -> None:
        if isinstance(block, Heading) and not block.text:
            return
        if isinstance(block, Heading):
            above = tuple(heading for heading in self._path if heading.level < block.level)
            self._path, self._position = (*above, block), None
            self.sections.append(PageSection(self._path, []))
        elif isinstance(block, Anchor):
            self._position = block.name
        elif isinstance(block, Box) and _has_heading(block):
            outside = self._path, self._position
            self.add(Paragraph(block.title, block.span))
            for inner in block.blocks:
                self.visit(inner)
            # What follows the box belongs to the heading before it.
            self._path, self._position = outside
        else:
            self.add(block)


def _has_heading(box: Box) -> bool:
    return any(
        isinstance(block, Heading) or (isinstance(block, Box) and _has_heading(block))
        for block in box.blocks
    )


def _with_words(sections: Sequence[PageSection]) -> Iterator[PageSection]:
    """Drop empty sections that have subsections; give other empty ones their heading as text."""
    for index, section in enumerate(sections):
        if plain_text(section.blocks):
            yield section
            continue
        following = sections[index + 1].path if index + 1 < len(sections) else ()
        depth = len(section.path)
        continues = len(following) >= depth and following[:depth] == section.path
        if section.path and not continues:
            heading = section.path[-1]
            yield replace(section, blocks=[Paragraph(heading.text, heading.span)])
