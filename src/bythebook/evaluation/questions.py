"""Validate the rows of a question set, and draw stratified samples of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bythebook.errors import InvalidInput
from bythebook.evaluation.nuggets import NuggetKey, read_nuggets


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the book by file and heading path; an empty path is the whole page."""

    file: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoldPlace:
    """Page of an answer and one of its headings; without a heading, the whole page."""

    file: str
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Question with what is known about its answer."""

    id: str
    question: str
    kind: str
    answerable: bool
    answers: tuple[str, ...] = ()  # any one of them is right
    file: str | None = None
    heading: str | None = None
    selection: str | None = None
    held_out: Section | None = None  # hidden from the search for this question
    gold: tuple[GoldPlace, ...] = ()  # every place of the answer, if there are several
    key: NuggetKey | None = None

    @property
    def places(self) -> tuple[GoldPlace, ...]:
        """Return where the answer is; empty if that is not known."""
        return self.gold or ((GoldPlace(self.file, self.heading),) if self.file else ())


def read_row(fields: Mapping[str, Any], *, default_id: str) -> Row:
    """Parse a row of a question set; raise InvalidInput with the name of an invalid field."""
    answers, key, answerable = _texts(fields, "answers"), read_nuggets(fields), _answerable(fields)
    for name, known in (("answers", answers), ("nuggets", key)):
        if known and not answerable:
            raise InvalidInput(f'"{name}" are given, but the question is marked as unanswerable.')
    gold = _gold(fields)
    first = gold[0] if gold else None
    return Row(
        id=str(fields.get("id") or default_id),
        question=_text(fields, "question") or "",
        kind=_text(fields, "kind") or ("answerable" if answerable else "unanswerable"),
        answerable=answerable,
        answers=answers,
        file=first.file if first else _text(fields, "file"),
        heading=first.heading if first else _text(fields, "heading") or _text(fields, "section"),
        selection=_text(fields, "selection") or _text(fields, "selected_text"),
        held_out=_held_out(fields),
        gold=gold,
        key=key,
    )


def sample(rows: Sequence[Row], limit: int) -> list[Row]:
    """Return a deterministic sample, proportional by kind, in the original order.

    Rows are chosen by a hash of their content, so that reordering a file or adding a row changes
    little.
    """
    drawn: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for index, row in enumerate(rows):
        digest = hashlib.sha256(f"{row.id}\n{row.question}".encode()).hexdigest()
        drawn[row.kind].append((digest, index))
    order = sorted(
        (turn / len(kind), digest, index)
        for kind in drawn.values()
        for turn, (digest, index) in enumerate(sorted(kind))
    )
    return [rows[index] for index in sorted(index for _, _, index in order[:limit])]


def _answerable(fields: Mapping[str, Any]) -> bool:
    """Read "answerable", or its opposite "is_impossible"; a question is answerable by default."""
    impossible = fields.get("is_impossible", False)
    answerable = fields.get("answerable", not impossible)
    for name, value in (("is_impossible", impossible), ("answerable", answerable)):
        if not isinstance(value, bool):
            raise InvalidInput(f'"{name}" is neither true nor false.')
    if "is_impossible" in fields and answerable == impossible:
        raise InvalidInput('"answerable" and "is_impossible" contradict each other.')
    return bool(answerable)


def _gold(fields: Mapping[str, Any]) -> tuple[GoldPlace, ...]:
    value = fields.get("gold") or []
    if not isinstance(value, list) or not all(
        isinstance(place, dict) and isinstance(place.get("file"), str) for place in value
    ):
        raise InvalidInput('"gold" is not a list of places, each with a "file".')
    return tuple(GoldPlace(place["file"], _text(place, "heading")) for place in value)


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if not isinstance(value, str | None):
        raise InvalidInput(f'"{name}" is not a text.')
    return value


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidInput(f'"{name}" is not a list of texts.')
    return tuple(value)


def _held_out(fields: Mapping[str, Any]) -> Section | None:
    value = fields.get("held_out")
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("file"), str):
        raise InvalidInput('"held_out" has no "file".')
    return Section(value["file"], _texts(value, "section"))
