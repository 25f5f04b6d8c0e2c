"""The catalog's passages in; where each row's answer stands in this book out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bythebook.book.passages import passage_of_selection
from bythebook.errors import InvalidInput
from bythebook.evaluate.questions import Row, Section
from bythebook.model import Citation, Passage, Place


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the answer stands: the page, and the passages of its section."""

    file: str
    passage_ids: frozenset[str]


class Places:
    """The book by file and heading."""

    def __init__(self, passages: Mapping[str, Passage]) -> None:
        self.passages = passages
        self._pages: defaultdict[str, list[Passage]] = defaultdict(list)
        for passage in passages.values():
            self._pages[passage.place.file].append(passage)

    def whereabouts(self, row: Row) -> Whereabouts | None:
        """None where the row names no place, or none that this book has."""
        file = self._file(row.file) if row.file and not row.selection else None
        if file is None:
            return None
        found = [passage for passage in self._pages[file] if _is_under(passage.place, row.heading)]
        return Whereabouts(file, frozenset(passage.id for passage in found)) if found else None

    def hidden(self, row: Row) -> frozenset[str]:
        """The passages that this question has to do without."""
        if row.held_out is None:
            return frozenset()
        hidden = self._within(row.held_out)
        if not hidden:
            raise InvalidInput(
                f"The question {row.id} holds out a section that this book does not have.",
                cure="Make the questions again: bythebook eval --make N",
            )
        return hidden

    def source(self, citation: Citation, row: Row) -> Passage | None:
        """What the catalog has under a citation's name, whatever the citation says."""
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
        """The book's own name of a file; question sets often start theirs further up."""
        parts = name.split("/")
        names = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((each for each in names if each in self._pages), None)


def _is_under(place: Place, heading: str | None) -> bool:
    return heading is None or heading in (*place.section, place.heading)
