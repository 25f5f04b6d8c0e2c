"""Locate the answers of question rows in the passages of the catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bythebook.errors import InvalidInput
from bythebook.evaluation.questions import GoldPlace, Row, Section
from bythebook.text.selections import passage_of_selection
from bythebook.types import Citation, Passage, Place


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Location of an answer: its pages, and the passages of its sections."""

    files: frozenset[str]
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
        places = () if row.selection else row.places
        found = [passage for place in places for passage in self._under(place)]
        if not found:
            return None
        files = frozenset(passage.place.file for passage in found)
        return Whereabouts(files, frozenset(passage.id for passage in found))

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

    def _under(self, place: GoldPlace) -> list[Passage]:
        pages = self._pages[self._file(place.file) or ""]
        return [passage for passage in pages if _is_under(passage.place, place.heading)]

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
