"""Find the earlier questions that a follow-up depends on, so that they are searched with it.

Rules for English. A question depends on its history if it has no topic of its own ("Why?", "Show
me an example") or if a pronoun has no antecedent in it ("How do I create one?"). If it is a
fragment ("And recall?") or refers to an enumeration ("the second step"), this is unclear: both
interpretations are searched. Any other question is searched alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from bythebook.language.english import follow_ups
from bythebook.language.english.comparisons import compared
from bythebook.language.english.follow_ups import ENUMERATED, EXPLETIVE_IT, FRAGMENT, SENTENCE
from bythebook.language.english.question_parts import split_parts
from bythebook.language.english.question_types import question_type
from bythebook.language.english.small_talk import is_small_talk
from bythebook.language.terms import terms_of
from bythebook.language.tokens import shortened
from bythebook.retrieval.question_analysis import QUESTION_TOKENS
from bythebook.text.units import split_units
from bythebook.types import Message, Question, Role

_LONGEST_CHAIN = 6  # earlier questions
_LONGEST_FRAGMENT = 8  # words
_TOKEN = re.compile(r"\w+(?:[-.+#/]\w+)*[+#]*|[^\w\s]")


class _Dependence(Enum):
    ALONE = auto()
    UNCLEAR = auto()
    ON_HISTORY = auto()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    lower: str
    is_term: bool  # can be searched for
    previous: str  # word, in lower case
    next: str  # word, in lower case; empty before punctuation

    @property
    def is_verb(self) -> bool:
        """Whether it is in a verb's position: "to create", "do I create", "causes it"."""
        has_object = (
            self.next in follow_ups.OBJECT_PRONOUNS and self.previous not in follow_ups.ARTICLES
        )
        return self.is_term and (self.previous in follow_ups.BEFORE_VERB or has_object)

    @property
    def names_topic(self) -> bool:
        """Whether it may be the topic of the question; in "how long", "long" is not."""
        qualifies = self.previous == "how" or self.lower in follow_ups.GENERIC_WORDS
        return self.is_term and not self.is_verb and not qualifies


def interpret(question: Question, history: Sequence[Message]) -> tuple[Question, ...]:
    """Return the question with the context it depends on, from the selection or the history.

    If it is unclear whether it depends on it, the question without context is the second. A
    selection takes precedence over the history. If the answer is restricted to the selection,
    there is no context. Only the beginning of a very long question, selection or message is used.
    """
    text = shortened(question.text, QUESTION_TOKENS)
    alone = question if text == question.text else replace(question, text=text)
    only_selection = question.selection is not None and question.selection_only
    if only_selection or is_small_talk(text):
        return (alone,)
    selection = shortened(question.selection or "", QUESTION_TOKENS)
    context = _topic_of_selection(selection) or _context(history)
    dependence = _dependence(text) if context else _Dependence.ALONE
    if dependence is _Dependence.ALONE:
        return (alone,)
    dependent = replace(alone, context=context)
    return (dependent, alone) if dependence is _Dependence.UNCLEAR else (dependent,)


def parts_of(question: Question) -> tuple[Question, ...]:
    """Return the questions that the question consists of, each with the context it depends on.

    In "What is SLAM, and when does it fail?" the first part is the context of the second. A
    question that is a single one has no parts.
    """
    texts = split_parts(shortened(question.text, QUESTION_TOKENS))
    parts: list[Question] = []
    for text in texts:
        depends = bool(parts) and _dependence(text) is not _Dependence.ALONE
        context = f"{question.context} {_closed(texts[0])}".strip() if depends else question.context
        parts.append(replace(question, text=text, context=context))
    return tuple(parts)


def sides_of(question: Question) -> tuple[Question, ...]:
    """Return a question about each of the things that the question compares.

    A number that compares them is found where both are named, not where each is explained.
    """
    if question_type(question.text).number:
        return ()
    return tuple(replace(question, text=f"What is {side}?") for side in compared(question.text))


def _topic_of_selection(selection: str) -> str:
    """Return the first sentence, which usually names the topic of a passage."""
    units = split_units(selection)
    return selection[units[0].start : units[0].end] if units else selection


def _context(history: Sequence[Message]) -> str:
    """Return the last question that can be asked alone, and the last follow-up after it."""
    asked = [message.content for message in history if message.role is Role.USER]
    recent = [shortened(text, QUESTION_TOKENS) for text in asked[-_LONGEST_CHAIN:]]
    alone = [n for n, text in enumerate(recent) if _dependence(text) is _Dependence.ALONE]
    chain = recent[alone[-1] if alone else 0 :]
    return " ".join(map(_closed, (*chain[:1], *chain[1:][-1:])))


def _closed(question: str) -> str:
    """Return the question with a final punctuation mark."""
    question = question.strip()
    return question if question.endswith(("?", ".", "!")) or not question else f"{question}?"


def _dependence(text: str) -> _Dependence:
    words = _words(text)
    if not any(word.names_topic for word in words) or _has_free_pronoun(words, text):
        return _Dependence.ON_HISTORY
    if ENUMERATED.search(text) or _is_fragment(words, text):
        return _Dependence.UNCLEAR
    return _Dependence.ALONE


def _is_fragment(words: Sequence[_Word], text: str) -> bool:
    """Return whether it begins like a continuation and has no verb: "and for services?"."""
    opening = FRAGMENT.match(text)
    if opening is None or len(words) > _LONGEST_FRAGMENT:
        return False
    return SENTENCE.search(text, opening.end()) is None


def _has_free_pronoun(words: Sequence[_Word], text: str) -> bool:
    """Return whether a pronoun has no antecedent in its own question.

    The words between an interrogative and its auxiliary are no antecedent: "what layers does it
    have?".
    """
    if EXPLETIVE_IT.search(text):
        return False
    asked_for = any(word.lower in follow_ups.INTERROGATIVES for word in words[:2])
    for word in words:
        if word.lower in follow_ups.AUXILIARIES:
            asked_for = False
        if word.names_topic and not (asked_for and _has_auxiliary_subject(words)):
            return False
        if _is_pronoun(word):
            return True
    return False


def _has_auxiliary_subject(words: Sequence[_Word]) -> bool:
    """Return whether the first auxiliary is followed by a pronoun."""
    first = next((word for word in words if word.lower in follow_ups.AUXILIARIES), None)
    return first is not None and first.next in follow_ups.SUBJECT_PRONOUNS


def _is_pronoun(word: _Word) -> bool:
    if word.lower in follow_ups.PERSONAL_PRONOUNS:
        return True
    if word.lower in follow_ups.ONE:
        return word.next != "of" and not terms_of(word.next)
    if word.lower in follow_ups.DEMONSTRATIVES:
        predicate = word.next in follow_ups.AFTER_PRONOUN or word.next.endswith("ed")
        return predicate or not terms_of(word.next)
    return False


def _words(text: str) -> list[_Word]:
    tokens = list(_TOKEN.finditer(text))
    lower = ["", *(match[0].lower().replace("’", "'") for match in tokens), ""]
    return [
        _Word(
            match[0],
            lower[n],
            bool(terms_of(match[0])),
            lower[n - 1],
            lower[n + 1] if lower[n + 1][:1].isalnum() else "",
        )
        for n, match in enumerate(tokens, 1)
    ]
