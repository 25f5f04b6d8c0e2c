"""Score answers by nuggets. A nugget is one point of the right answer, recognised by patterns.

The patterns come from a question set, so they are checked before use: their length, their
syntax, and repetitions that can take very long. The text of an answer is clipped.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bythebook.errors import InvalidInput

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
