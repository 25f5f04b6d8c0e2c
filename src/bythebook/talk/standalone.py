"""A follow-up and its history in, a question that can be searched by itself out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bythebook.index.lexicon import terms_of
from bythebook.model import Message, Question, Role

_OPENINGS = re.compile(r"(and|but|so|also|what about|how about|why not)\b", re.IGNORECASE)
_REFERENCES = re.compile(r"\b(it|its|they|them|their|this|that|these|those|one|ones)\b", re.I)
_WORD = re.compile(r"\w+(?:[-.]\w+)*")


def stand_alone(question: Question, history: Sequence[Message]) -> Question:
    """The question with the words of the last one that it leans on, if it leans on any."""
    last = next((m.content for m in reversed(history) if m.role is Role.USER), None)
    if last is None or not _leans(question.text):
        return question
    known = set(terms_of(question.text))
    borrowed = [word for word in _WORD.findall(last) if _adds(word, known)]
    if not borrowed:
        return question
    return replace(question, text=f"{question.text} {' '.join(borrowed)}")


def _leans(text: str) -> bool:
    return bool(_OPENINGS.match(text.strip()) or _REFERENCES.search(text))


def _adds(word: str, known: set[str]) -> bool:
    terms = terms_of(word)
    return bool(terms) and not known.issuperset(terms)
