"""Locate the answers of question rows in the passages of the catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bythebook.chunking.passages import passage_of_selection
from bythebook.errors import InvalidInput
from bythebook.evaluation.questions import Row, Section
from bythebook.types import Citation, Passage, Place


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Location of an answer: the page, and the passages of its section."""

    file: str
    passage_ids: frozenset[str]


class Places:
    """Passages of the book, looked up by file and heading."""

    def __init__(self, passages: Mapping[str, Passage]) -> None:
        self.passages = passages
        self._pages: defaultdict[str, list[Passage]] = defaultdict(list)
        for passage in passages.values():
            self._pages[passage.place.file].append(passage)

    def whereabouts(self, row: Row) -> Whereabouts | None:
        """Return the location of the answer; None if the row names none that this book has."""
        file = self._file(row.file) if row.file and not row.selection else None
        if file is None:
            return None
        found = [passage for passage in self._pages[file] if _is_under(passage.place, row.heading)]
        return Whereabouts(file, frozenset(passage.id for passage in found)) if found else None

    def hidden(self, row: Row) -> frozenset[str]:
        """Return the passages that are held out for this question."""
        if row.held_out is None:
            return frozenset()
        hidden = self._within(row.held_out)
        if not hidden:
            raise InvalidInput(
                f"The question {row.id} holds out a section that this book does not have.",
                hint="Make the questions again: bythebook eval --make N",
            )
        return hidden

    def source(self, citation: Citation, row: Row) -> Passage | None:
        """Return the catalog's passage for a citation, or the row's selection if it has one."""
        if row.selection:
            return passage_of_selection(row.selection, url=None)
        return self.passages.get(citation.passage_id)

    def _within(self, section: Section) -> frozenset[str]:
        file = self._file(section.file)
        depth = len(section.path)
        return frozenset(
            passage.id
            for passage in (self._pages[file] if file else ())
            if passage.place.section[:depth] == section.path
        )

    def _file(self, name: str) -> str | None:
        """Return the book's name of a file; question sets often have paths with more parents."""
        parts = name.split("/")
        names = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((each for each in names if each in self._pages), None)


def _is_under(place: Place, heading: str | None) -> bool:
    return heading is None or heading in (*place.section, place.heading)
