"""Rows of a question set: what is known about each answer, and its nuggets."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bythebook.errors import InvalidInput


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


# --- nuggets -------------------------------------------------------------------------------------


MOST_WORDS = 250  # of a useful answer
LONGEST_PATTERN = 400  # characters
LONGEST_TEXT = 4_000  # characters of an answer that are searched
MOST_REPETITIONS = 4  # without an upper limit, in one pattern

_CITATION = re.compile(r"\[\d+\]")
_MARKUP = str.maketrans(dict.fromkeys("*_`|#>", " ") | {"’": "'"})
# Escaped characters and character classes: what they contain repeats nothing.
_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+(?:\]|\\?\Z)", re.S)
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{\d)")
_UNLIMITED = re.compile(r"[*+]|\{\d*,\}")


@dataclass(frozen=True, slots=True)
class Nugget:
    """Fact that any one of the patterns recognises."""

    patterns: tuple[re.Pattern[str], ...]
    vital: bool = True

    @property
    def name(self) -> str:
        return " | ".join(each.pattern for each in self.patterns)

    def is_in(self, plain: str) -> bool:
        return any(pattern.search(plain) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class NuggetKey:
    """All nuggets of a question, and the patterns that its answer must not contain."""

    nuggets: tuple[Nugget, ...] = ()
    must_not: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class NuggetScore:
    """Nuggets of one answer; a refusal has none."""

    vital: int  # in the question
    found: int  # of the vital ones
    words: int
    missing: tuple[str, ...] = ()  # names of the vital nuggets that were not found
    forbidden: tuple[str, ...] = ()  # patterns found that must not be there

    @property
    def recall(self) -> float:
        return self.found / self.vital

    @property
    def useful(self) -> bool:
        """Return whether two thirds of the vital nuggets are there, and little else."""
        enough = self.found > 0 and self.found >= self.vital - self.vital // 3
        return enough and not self.forbidden and self.words <= MOST_WORDS


def read_nuggets(fields: Mapping[str, Any]) -> NuggetKey | None:
    """Parse ``nuggets`` and ``must_not`` of a row; raise InvalidInput if one cannot be used."""
    rows, must_not = fields.get("nuggets") or [], fields.get("must_not") or []
    if not isinstance(rows, list):
        raise InvalidInput('"nuggets" is not a list.')
    nuggets = tuple(_nugget(row) for row in rows)
    if nuggets and not any(nugget.vital for nugget in nuggets):
        raise InvalidInput('"nuggets" has no vital nugget.')
    forbidden = _patterns(must_not, "must_not")
    if forbidden and not nuggets:
        raise InvalidInput('"must_not" is given without "nuggets".')
    return NuggetKey(nuggets, forbidden) if nuggets else None


def score_nuggets(answer: str | None, key: NuggetKey) -> NuggetScore:
    """Score the text of an answer; None is a refusal."""
    plain = plain_text((answer or "")[:LONGEST_TEXT])
    vital = [nugget for nugget in key.nuggets if nugget.vital]
    missing = [nugget for nugget in vital if answer is None or not nugget.is_in(plain)]
    return NuggetScore(
        vital=len(vital),
        found=len(vital) - len(missing),
        words=len(plain_text(answer or "").split()),
        missing=tuple(nugget.name for nugget in missing),
        forbidden=tuple(each.pattern for each in key.must_not if each.search(plain)),
    )


def plain_text(text: str) -> str:
    """Return the text as patterns see it: case folded, without markers of citations and markup."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_CITATION.sub(" ", folded).translate(_MARKUP).split())


def _nugget(row: object) -> Nugget:
    if not isinstance(row, dict) or not isinstance(row.get("vital", True), bool):
        raise InvalidInput('A row of "nuggets" is not {"any": [pattern], "vital": true or false}.')
    patterns = _patterns(row.get("any"), "any")
    if not patterns:
        raise InvalidInput('A row of "nuggets" has no pattern in "any".')
    return Nugget(patterns, row.get("vital", True))


def _patterns(value: object, name: str) -> tuple[re.Pattern[str], ...]:
    texts: Sequence[object] = value if isinstance(value, list) else ()
    if value is not None and not isinstance(value, list):
        raise InvalidInput(f'"{name}" is not a list of patterns.')
    return tuple(_compiled(text, name) for text in texts)


def _compiled(text: object, name: str) -> re.Pattern[str]:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f'"{name}" has a pattern that is not a text, or is empty.')
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    if len(text) > LONGEST_PATTERN:
        raise InvalidInput(f'"{name}": the pattern {shown!r} is longer than {LONGEST_PATTERN}.')
    bare = _LITERAL.sub("x", text)
    if _REPEATED_GROUP.search(bare):
        raise InvalidInput(f'"{name}": the pattern {shown!r} repeats a group.')
    if len(_UNLIMITED.findall(bare)) > MOST_REPETITIONS:
        raise InvalidInput(
            f'"{name}": the pattern {shown!r} has more than {MOST_REPETITIONS} "*" or "+".',
            hint='Limit the length, as in ".{0,40}".',
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # of "[[", which is valid
            return re.compile(text.replace("’", "'"), re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(f'"{name}": the pattern {shown!r} is invalid: {error}.') from None
