"""A question and a passage in; what speaks against the passage holding the answer, out.

Similar is not the same as answering. A question whose rarest word, whose name or number the
passage does not have, or that asks for what the passage denies, has probably another answer, or
none. These are the marks by which people tell; each is a number that the calibrated score weighs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from bythebook.index.lexicon import covered, language_of_passage, numbers_of
from bythebook.model import Passage, Unit

_NEGATION = re.compile(
    r"\b(not|no|never|none|nor|neither|nothing|nobody|without|cannot|except|least|rarely|hardly|"
    r"\w+n['’]t|unable|fail\w*|lack\w*|refus\w*|stop\w*)\b",
    re.IGNORECASE,
)
# A capital inside the sentence: what begins it may be any word.
_NAME = re.compile(r"(?<=[\w,;:'’\"“)] )[\"“'‘(]?([A-Z][\w'’-]+)")
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


@dataclass(frozen=True, slots=True)
class Doubts:
    missing: float  # the rarest asked term that the nearest unit lacks, as a share of the rarest
    denied: float  # 1: the question negates and the nearest unit does not
    strange: float  # names and numbers of the question that the passage does not have
    hollow: float = 0.0  # 1: it repeats the question, and adds nothing


def doubts(
    question: str,
    asked: Mapping[int, float],
    passage: Passage,
    unit_cosines: Sequence[float],
    telling: Sequence[bool] = (),
) -> Doubts:
    """``asked`` is the question's terms with their IDF; ``telling``, which units add to it."""
    nearest, words = _nearest_unit(asked, passage, unit_cosines, telling)
    rarest = max(asked.values(), default=0.0)
    lacking = max((idf for term, idf in asked.items() if term not in words), default=0.0)
    denies = _NEGATION.search(question) and not _NEGATION.search(nearest)
    return Doubts(
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
    """The unit that comes closest to the question by meaning and words, and its terms."""
    language = language_of_passage(passage)
    nearest, words, most = passage.text, set[int](), float("-inf")
    units: Iterable[tuple[float, Unit]] = zip(unit_cosines, passage.units, strict=False)
    if any(telling):
        units = compress(units, telling)
    for cosine, unit in sorted(units, key=lambda pair: -pair[0]):
        if cosine + 0.5 <= most:  # nor can those behind it come closer
            break
        text = passage.unit_text(unit)
        own = set(numbers_of(text, language))
        near = cosine + covered(asked, own) / 2
        if near > most:
            nearest, words, most = text, own, near
    return nearest, words or set(numbers_of(nearest, language))


def _strangers(question: str, passage: Passage) -> set[str]:
    said = f"{passage.place.path}\n{passage.text}".lower()
    names = {name.lower().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(question)}
    numbers = set(_NUMBER.findall(question))
    return {each for each in names | numbers if each not in said}
