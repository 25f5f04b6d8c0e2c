"""Analyse a question once; every later step of retrieval and answering uses the result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from bythebook.language.english.follow_ups import GENERIC_WORDS
from bythebook.language.english.question_types import QuestionType, question_type
from bythebook.language.english.spelling import correct_spelling
from bythebook.language.terms import Vocabulary, covered, term_ids
from bythebook.language.tokens import shortened
from bythebook.text.text_kinds import hidden_kinds
from bythebook.types import Question, TextKind

QUESTION_TOKENS = 600  # of a question that are searched for, from its beginning

# Capitalised inside the sentence: the first word may be any word.
_NAME = re.compile(r"(?<=[\w,;:'’\"“)] )[\"“'‘(]?([A-Z][\w'’-]+)")
_GENERIC = frozenset(term_ids(" ".join(GENERIC_WORDS)))  # about the form of an answer, no topic
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


@dataclass(frozen=True, slots=True)
class AnalyzedQuestion:
    """A question, with everything that is computed from its text alone."""

    question: Question
    text: str  # the context and the beginning of the question's text, of bounded length, corrected
    terms: Mapping[int, float]  # with their IDF
    type: QuestionType
    entities: frozenset[str]  # names and numbers, in lower case
    unknown_share: float  # IDF-weighted share of the words that the book never has
    hidden: Set[TextKind]  # kinds of text that are no evidence for it


def analyze(question: Question, vocabulary: Vocabulary) -> AnalyzedQuestion:
    own = shortened(question.text, QUESTION_TOKENS)
    own = correct_spelling(own, vocabulary.frequencies, also=_GENERIC).text
    text = f"{question.context} {own}" if question.context else own
    names = (name.lower().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(text))
    terms = vocabulary.ask(text)
    topic = {term: idf for term, idf in terms.items() if term not in _GENERIC}
    known = {term for term in topic if vocabulary.frequencies.get(term, 0)}
    return AnalyzedQuestion(
        question=question,
        text=text,
        terms=terms,
        type=_type(own, question.context),
        entities=frozenset((*names, *_NUMBER.findall(text))),
        unknown_share=1 - covered(topic, known) if topic else 0.0,
        hidden=hidden_kinds(question),
    )


def _type(text: str, context: str) -> QuestionType:
    """Return the type of the question or, if it has none ("And in C++?"), of its context."""
    own = question_type(text)
    return own if own != QuestionType() else question_type(context)
