"""Compare answers with gold answers as SQuAD does, extended to every script."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_ARTICLES = frozenset({"a", "an", "the"})
# Scripts without spaces between words: each character counts as one word.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
)


def words_of(text: str) -> list[str]:
    """Return the words in lower case, without punctuation and articles."""
    plain = unicodedata.normalize("NFKC", text).lower()
    bare = "".join(char for char in plain if unicodedata.category(char)[0] not in "PS")
    spaced = _UNSPACED.sub(r" \1 ", bare)
    return [word for word in spaced.split() if word not in _ARTICLES]


def holds(text: str, answers: Iterable[str]) -> bool:
    """Return whether the text contains one of the answers word for word."""
    shown = words_of(text)
    return any(_contains(shown, answer, text) for answer in answers)


def _contains(shown: list[str], answer: str, text: str) -> bool:
    wanted = words_of(answer)
    if not wanted:  # "++" or "The": only punctuation or articles, compared unchanged
        return bool(answer.strip()) and answer.strip().lower() in text.lower()
    return f" {' '.join(wanted)} " in f" {' '.join(shown)} "


def overlap(text: str, answers: Iterable[str]) -> float:
    """Return the highest SQuAD token F1 over the answers."""
    return max((_f1(words_of(text), words_of(answer)) for answer in answers), default=0.0)


def _f1(one: list[str], other: list[str]) -> float:
    shared = (Counter(one) & Counter(other)).total()
    if not shared:
        return float(one == other)
    precision, recall = shared / len(one), shared / len(other)
    return 2 * precision * recall / (precision + recall)
