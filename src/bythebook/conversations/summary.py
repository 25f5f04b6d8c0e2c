"""Summarise a conversation in one line, without a language model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bythebook.language.terms import terms_of
from bythebook.types import Message, Role

_FROM_EXCHANGE = 5  # chat: "auto-generated when conversation reaches 5+ exchanges"
_LONGEST = 200
_HEADINGS = 4
_WORDS = 5
_WORD = re.compile(r"\w+(?:[-.]\w+)*")


def summarise(messages: Sequence[Message]) -> str | None:
    """Return the cited headings, most frequent first, and further terms of the questions."""
    questions = [message.content for message in messages if message.role is Role.USER]
    if len(questions) < _FROM_EXCHANGE:
        return None
    cited = [message.citations[0].place.topic for message in messages if message.citations]
    headings = _commonest(cited)[:_HEADINGS]
    in_headings = {term for heading in headings for term in terms_of(heading)}
    words = _other_terms(questions, in_headings)[:_WORDS]
    return _fitting([*headings, *words]) or None


def _other_terms(questions: Iterable[str], excluded: set[str]) -> list[str]:
    """Return terms of the questions that are not ``excluded``, most frequent first."""
    spelled: dict[str, str] = {}
    asked: list[str] = []
    for question in questions:
        own: dict[str, None] = {}
        for word in _WORD.findall(question):
            terms = terms_of(word)
            if terms and terms[0] not in excluded:
                spelled.setdefault(terms[0], word)
                own.setdefault(terms[0])
        asked.extend(own)
    return [spelled[term] for term in _commonest(asked)]


def _commonest(names: Iterable[str]) -> list[str]:
    """Return distinct names by frequency, ties in order of appearance (as Counter keeps it)."""
    return [name for name, _ in Counter(names).most_common()]


def _fitting(parts: Sequence[str]) -> str:
    """Join as many whole parts as fit; truncate only the first."""
    line = parts[0][:_LONGEST] if parts else ""
    for part in parts[1:]:
        longer = f"{line}; {part}"
        if len(longer) > _LONGEST:
            break
        line = longer
    return line
