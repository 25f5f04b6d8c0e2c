"""Detect sentences that only repeat the question and therefore cannot answer it.

A sentence adds nothing, however similar, if all its words are in the question, if it is a
question itself, or if it only adds that something is stated, or not stated, somewhere. For
yes-or-no questions and choices, the question's own words may be the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from bythebook.language.english.lexicon import LEANS_BACK, SAYING, WEIGHTY
from bythebook.language.terms import language_of_passage, term_ids
from bythebook.language.text import words
from bythebook.types import Passage

# The answer needs words that are not in the question.
_OPEN = re.compile(r"\b(what|who|whom|whose|when|where|which|why|how)\b", re.IGNORECASE)
_CLOSED = re.compile(
    r"\A\W*(is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|"
    r"might|must)\b|\b(or|whether|either)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\?[\"'”’)*_\]]*\s*\Z")
_SAYING = frozenset(term_ids(SAYING))


def adds_information(question: str, passage: Passage) -> tuple[bool, ...]:
    """Return for each unit of the passage whether it adds information to the question."""
    language = language_of_passage(passage)
    rules = _rules_for(question, language)
    flags: list[bool] = []
    for text in map(passage.unit_text, passage.units):
        if rules is None or not text.strip():
            flags.append(bool(text.strip()))  # blank: not shown to whoever asks
            continue
        # "It switches the kettle off" inherits the flag of the sentence before it.
        inherits = flags[-1:] == [True] and LEANS_BACK.match(text)
        is_question = _ASKS.search(text)
        flags.append(not is_question and bool(inherits or rules.allow(text, language)))
    return tuple(flags)


@dataclass(frozen=True, slots=True)
class _EchoRules:
    """What a sentence must contain to add information to one question."""

    is_open: bool  # the answer needs words that the question does not contain
    uninformative: frozenset[int]  # terms that add no information
    question: str  # normalised words, without punctuation

    def allow(self, text: str, language: str) -> bool:
        bare = _bare(text)
        rest = bare.replace(self.question, " ")  # quoting the question does not answer it
        terms = term_ids(text if rest == bare else rest, language)
        if not self.uninformative.issuperset(terms):
            return True
        if not self.is_open:
            return rest == bare and not terms  # e.g. "No."
        return any(word in WEIGHTY and f" {word} " not in self.question for word in rest.split())


def _bare(text: str) -> str:
    return f" {' '.join(words(text.lower()))} "


@lru_cache(maxsize=64)
def _rules_for(question: str, language: str) -> _EchoRules | None:
    """Return the rules for the question, or None if any sentence may answer it."""
    terms = term_ids(question, language)
    if _CLOSED.search(question):
        return _EchoRules(False, _SAYING.difference(terms), _bare(question))
    if _OPEN.search(question):
        return _EchoRules(True, _SAYING.union(terms), _bare(question))
    return None
