"""Detect sentences that only repeat the question and therefore cannot answer it.

A sentence adds nothing, however similar, if all its words are in the question, if it is a
question itself, or if it only adds that something is stated, or not stated, somewhere. For
yes-or-no questions and choices, the question's own words may be the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bythebook.language.terms import language_of_passage, term_ids
from bythebook.language.text import word_set, words
from bythebook.types import Passage

# The answer needs words that are not in the question.
_OPEN = re.compile(r"\b(what|who|whom|whose|when|where|which|why|how)\b", re.IGNORECASE)
_CLOSED = re.compile(
    r"\A\W*(is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|"
    r"might|must)\b|\b(or|whether|either)\b",
    re.IGNORECASE,
)
LEANS_BACK = re.compile(
    r"(it|its|they|their|them|this|these|that|those|he|she|his|her|such|both|here|there)\b", re.I
)
_ASKS = re.compile(r"\?[\"'”’)*_\]]*\s*\Z")

# Words about statements as such: they refer to an answer, or deny one, but are none.
_ABOUT_SAYING = """
answer answered available book chapter contain course cover describes described discuss disregard
document elsewhere explains explained explanation find following found gives given ignore
information know known learn lesson look mention nothing page passage provide question read refer
said say section see shows shown speak state tells told text textbook topic unanswered unknown
"""
# Stop words that may still be the whole answer.
_WEIGHTY = word_set(
    "above after again against all before below between both down during few most more off once "
    "only over same through under until up"
)
_SAYING = frozenset(term_ids(_ABOUT_SAYING))


def adds_information(question: str, passage: Passage) -> tuple[bool, ...]:
    """Return for each unit of the passage whether it adds information to the question."""
    return tuple(_telling(question, passage))


def _telling(question: str, passage: Passage) -> Iterator[bool]:
    language = language_of_passage(passage)
    asked = _asked(question, language)
    told = False
    for unit in passage.units:
        text = passage.unit_text(unit)
        if asked is None:
            told = True
        elif _ASKS.search(text):
            told = False
        else:
            # "It switches the kettle off" inherits the topic of the sentence before it.
            leans = told and LEANS_BACK.match(text) is not None
            told = leans or asked.is_answered_by(text, language)
        yield told


@dataclass(frozen=True, slots=True)
class _Asked:
    is_open: bool  # its answer needs words that it does not contain
    known: frozenset[int]  # terms that add no information
    text: str  # normalised words, without punctuation

    def is_answered_by(self, text: str, language: str) -> bool:
        said = _bare(text)
        rest = said.replace(self.text, " ")  # quoting the question does not answer it
        terms = term_ids(text if rest == said else rest, language)
        if not self.known.issuperset(terms):
            return True
        if not self.is_open:
            return rest == said and not terms  # e.g. "No."
        return any(word in _WEIGHTY and f" {word} " not in self.text for word in rest.split())


def _bare(text: str) -> str:
    return f" {' '.join(words(text.lower()))} "


@lru_cache(maxsize=64)
def _asked(question: str, language: str) -> _Asked | None:
    """Analyse the question; return None if no rule matches: then any sentence may answer."""
    terms = term_ids(question, language)
    if _CLOSED.search(question):
        return _Asked(False, _SAYING.difference(terms), _bare(question))
    return _Asked(True, _SAYING.union(terms), _bare(question)) if _OPEN.search(question) else None
