"""A question and a sentence of the book in; whether the sentence says more than was asked, out.

A sentence of which every word stands in the question answers nothing, however near to it it is;
nor does one that is a question itself, or that adds only that something is said, or not said,
somewhere. The words of yes-or-no questions and of choices may be their answers, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bythebook.book.letters import word_set, words
from bythebook.index.lexicon import language_of_passage, numbers_of
from bythebook.model import Passage

# Asks for something that it does not name itself.
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

# Words of speaking about what is said: they lead to an answer, or away from one.
_ABOUT_SAYING = """
answer answered available book chapter contain course cover describes described discuss disregard
document elsewhere explains explained explanation find following found gives given ignore
information know known learn lesson look mention nothing page passage provide question read refer
said say section see shows shown speak state tells told text textbook topic unanswered unknown
"""
# Words too common to search for that may yet be all the answer there is.
_WEIGHTY = word_set(
    "above after again against all before below between both down during few most more off once "
    "only over same through under until up"
)
_SAYING = frozenset(numbers_of(_ABOUT_SAYING))


def telling(question: str, passage: Passage) -> tuple[bool, ...]:
    """Of each unit of the passage: whether it adds anything to the question."""
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
            # "It switches the kettle off" adds what the sentence before it is about.
            leans = told and LEANS_BACK.match(text) is not None
            told = leans or asked.is_answered_by(text, language)
        yield told


@dataclass(frozen=True, slots=True)
class _Asked:
    is_open: bool  # its answer needs words that it has not
    known: frozenset[int]  # terms that answer nothing
    text: str  # its words alone

    def is_answered_by(self, text: str, language: str) -> bool:
        said = _bare(text)
        rest = said.replace(self.text, " ")  # whoever quotes a question has not answered it yet
        terms = numbers_of(text if rest == said else rest, language)
        if not self.known.issuperset(terms):
            return True
        if not self.is_open:
            return rest == said and not terms  # as "No."
        return any(word in _WEIGHTY and f" {word} " not in self.text for word in rest.split())


def _bare(text: str) -> str:
    return f" {' '.join(words(text.lower()))} "


@lru_cache(maxsize=64)
def _asked(question: str, language: str) -> _Asked | None:
    """None if it is no question that we understand: then anything may answer."""
    terms = numbers_of(question, language)
    if _CLOSED.search(question):
        return _Asked(False, _SAYING.difference(terms), _bare(question))
    return _Asked(True, _SAYING.union(terms), _bare(question)) if _OPEN.search(question) else None
