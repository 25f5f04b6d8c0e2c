"""Rewrite follow-ups into self-contained questions that can be searched without the history.

Rules for English. A question depends on its history if it has no topic of its own ("Why?", "Show
me an example"), if a pronoun has no antecedent in it ("How do I create one?"), or if it is a
sentence fragment ("And in Python?"). Any other question is left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bythebook.language.english import follow_ups
from bythebook.language.english.follow_ups import (
    DEFINITION_QUESTION,
    EXPLETIVE_IT,
    FRAGMENT,
    WHAT_ABOUT,
)
from bythebook.language.english.question_parts import split_parts
from bythebook.language.sentences import split_units
from bythebook.language.terms import terms_of
from bythebook.language.tokens import shortened
from bythebook.retrieval.question_analysis import QUESTION_TOKENS
from bythebook.types import Message, Question, Role

_LONGEST_CHAIN = 6  # exchanges in a chain of follow-ups
_LONGEST_TERM = 5  # words
_TOKEN = re.compile(r"\w+(?:[-.+#/]\w+)*[+#]*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
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


def rewrite_follow_up(question: Question, history: Sequence[Message]) -> Question:
    """Return the question with the context it depends on, from the selection or the history.

    A selection takes precedence over the history. If the answer is restricted to the selection,
    nothing is added. Only the beginning of a very long question, selection or message is used.
    """
    own = shortened(question.text, QUESTION_TOKENS)
    selected = question.selection is not None
    if (selected and question.selection_only) or not (selected or history):
        text = own
    else:
        selection = shortened(question.selection or "", QUESTION_TOKENS)
        text = _resolve(own, _topic_of_selection(selection) or _context(history))
    return question if text == question.text else replace(question, text=text)


def parts_of(question: Question) -> tuple[Question, ...]:
    """Return the questions that the question consists of, each with the context it depends on.

    In "What is SLAM, and when does it fail?" the second part is "when does the SLAM fail?". A
    question that is a single one has no parts.
    """
    parts: list[str] = []
    for part in split_parts(shortened(question.text, QUESTION_TOKENS)):
        parts.append(_resolve(part, parts[-1]) if parts else part)
    return tuple(replace(question, text=part) for part in parts)


def _topic_of_selection(selection: str) -> str:
    """Return the first sentence, which usually names the topic of a passage."""
    units = split_units(selection)
    return selection[units[0].start : units[0].end] if units else selection


def _context(history: Sequence[Message]) -> str:
    """Return the last question, rewritten like all before it.

    If it names no topic, the heading that its answer cites is appended.

    After "What is a topic?", "And how do I create one?" is "And how do I create the topic?".
    """
    recent = list(history[-2 * _LONGEST_CHAIN :])
    context = ""
    for message, answer in pairwise([*recent, recent[-1]]):
        if message.role is not Role.USER:
            continue
        context = _resolve(shortened(message.content, QUESTION_TOKENS), context)
        context = shortened(context, QUESTION_TOKENS)
        if answer.citations and not any(word.names_topic for word in _words(context)):
            context = f"{context} {answer.citations[0].place.topic}"
    return context


def _resolve(text: str, context: str) -> str:
    words = _words(text)
    free = next(_free_pronouns(words, text), None)
    if free is not None:
        return _with_topic(text, free, _topic(context))
    if FRAGMENT.match(text) or not any(word.names_topic for word in words):
        return _with_words(text, [word for word in _words(context) if word.is_term])
    if WHAT_ABOUT.match(text):
        return _with_words(text, [word for word in _words(context) if word.is_verb])
    return text


def _free_pronouns(words: Sequence[_Word], text: str) -> Iterator[_Word]:
    """Yield the pronouns without an antecedent in their own question."""
    if EXPLETIVE_IT.search(text):
        return
    for word in words:
        if word.names_topic:
            return
        if _is_pronoun(word):
            yield word


def _is_pronoun(word: _Word) -> bool:
    if word.lower in follow_ups.PERSONAL_PRONOUNS:
        return True
    if word.lower in follow_ups.ONE:
        alone = not word.next or not terms_of(word.next)
        return (
            alone
            and word.previous
            not in follow_ups.QUANTIFIERS_BEFORE_ONE | follow_ups.AUXILIARIES_BEFORE_ONE
            and word.next != "of"
        )
    if word.lower in follow_ups.DEMONSTRATIVES:
        predicate = word.next in follow_ups.AFTER_PRONOUN or word.next.endswith("ed")
        return predicate or not terms_of(word.next)
    return False


def _topic(context: str) -> str:
    """Return the topic of a question: the term it asks to define, or the words that may name it."""
    defined = DEFINITION_QUESTION.fullmatch(context.rstrip().rstrip("?.!").rstrip())
    if defined and len(defined["term"].split()) <= _LONGEST_TERM:
        return defined["term"].strip("\"'“”‘’`*")
    return " ".join(word.text for word in _words(context) if word.names_topic)


def _with_topic(text: str, pronoun: _Word, topic: str) -> str:
    if not topic:
        return text
    end = pronoun.start + len(pronoun.text)
    return f"{text[: pronoun.start]}the {topic}{text[end:]}"


def _with_words(text: str, words: Sequence[_Word]) -> str:
    own = set(terms_of(text))
    borrowed = [
        w.text
        for w in words
        if w.lower not in follow_ups.GENERIC_WORDS and not own >= {*terms_of(w.text)}
    ]
    return f"{text} {' '.join(dict.fromkeys(borrowed))}" if borrowed else text


def _words(text: str) -> list[_Word]:
    tokens = list(_TOKEN.finditer(text))
    lower = ["", *(match[0].lower().replace("’", "'") for match in tokens), ""]
    return [
        _Word(
            match[0],
            match.start(),
            lower[n],
            bool(terms_of(match[0])),
            lower[n - 1],
            lower[n + 1] if lower[n + 1][:1].isalnum() else "",
        )
        for n, match in enumerate(tokens, 1)
    ]
