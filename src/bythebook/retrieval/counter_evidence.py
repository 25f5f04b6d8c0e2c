"""Signals that a passage does not contain the answer, although it is similar to the question.

The answer is probably elsewhere, or nowhere, if the passage lacks the rarest term, a name or a
number of the question, or if only the question negates. People judge by the same signs. Each
signal is an input of the calibrated score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from bythebook.language.terms import covered, language_of_passage, term_ids
from bythebook.types import Passage, Unit

_NEGATION = re.compile(
    r"\b(not|no|never|none|nor|neither|nothing|nobody|without|cannot|except|least|rarely|hardly|"
    r"\w+n['’]t|unable|fail\w*|lack\w*|refus\w*|stop\w*)\b",
    re.IGNORECASE,
)
# Capitalised inside the sentence: the first word may be any word.
_NAME = re.compile(r"(?<=[\w,;:'’\"“)] )[\"“'‘(]?([A-Z][\w'’-]+)")
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


@dataclass(frozen=True, slots=True)
class CounterEvidence:
    missing: float  # highest IDF of a term that the nearest unit lacks / highest IDF asked
    denied: float  # 1: the question negates and the nearest unit does not
    strange: float  # names and numbers of the question that the passage does not have
    hollow: float = 0.0  # 1: it only repeats the question


def counter_evidence(
    question: str,
    asked: Mapping[int, float],
    passage: Passage,
    unit_cosines: Sequence[float],
    telling: Sequence[bool] = (),
) -> CounterEvidence:
    """Compute the signals for one passage.

    ``asked`` maps the question's terms to their IDF; ``telling`` marks the units that add
    information to the question.
    """
    nearest, words = _nearest_unit(asked, passage, unit_cosines, telling)
    rarest = max(asked.values(), default=0.0)
    lacking = max((idf for term, idf in asked.items() if term not in words), default=0.0)
    denies = _NEGATION.search(question) and not _NEGATION.search(nearest)
    return CounterEvidence(
        missing=lacking / rarest if rarest else 0.0,
        denied=1.0 if denies else 0.0,
        strange=float(len(_strangers(question, passage))),
        hollow=1.0 if telling and not any(telling) else 0.0,
    )


def _nearest_unit(
    asked: Mapping[int, float],
    passage: Passage,
    unit_cosines: Sequence[float],
    telling: Sequence[bool],
) -> tuple[str, set[int]]:
    """Return the unit nearest to the question by cosine and terms, and its terms."""
    language = language_of_passage(passage)
    nearest, words, most = passage.text, set[int](), float("-inf")
    units: Iterable[tuple[float, Unit]] = zip(unit_cosines, passage.units, strict=False)
    if any(telling):
        units = compress(units, telling)
    for cosine, unit in sorted(units, key=lambda pair: -pair[0]):
        if cosine + 0.5 <= most:  # terms add at most 0.5: later units cannot be nearer
            break
        text = passage.unit_text(unit)
        own = set(term_ids(text, language))
        near = cosine + covered(asked, own) / 2
        if near > most:
            nearest, words, most = text, own, near
    return nearest, words or set(term_ids(nearest, language))


def _strangers(question: str, passage: Passage) -> set[str]:
    said = f"{passage.place.path}\n{passage.text}".lower()
    names = {name.lower().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(question)}
    numbers = set(_NUMBER.findall(question))
    return {each for each in names | numbers if each not in said}
