"""Recognise small talk: greetings, thanks, and questions about who is answering."""

from __future__ import annotations

import re

from bythebook.language.text import word_set

_LONGEST = 80  # characters
_GREETINGS = word_set("hi hello hey hallo hiya greetings howdy yo morning evening afternoon")
_THANKS = word_set("thanks thank thx cheers ty")
_FAREWELLS = word_set("bye goodbye ciao farewell")
_PRAISE = word_set("helpful useful great awesome perfect lol haha ok okay sure")
_TALK = _GREETINGS | _THANKS | _FAREWELLS | _PRAISE
_FILLERS = word_set(
    "there you very really much so a lot again all everyone everybody book cool nice good and well "
    "done for the your help answer that this it was is now then see later my friend please dear"
)
_WHO = re.compile(
    r"(?:so )?(?:who|what) are you|what(?: is|['’]?s) your name|are you (?:a |an )?"
    r"(?:bot|robot|human|ai|chatbot|real|there)|what can (?:you|i) (?:do|ask)(?: you| here)?|"
    r"how are you(?: today| doing)?|what(?:['’]s| is) up",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_STOP = re.compile(r"[.!?,;:–—-]|\band\b")


def is_small_talk(text: str) -> bool:
    """Return whether the text only greets, thanks, says goodbye or asks who answers."""
    if len(text) > _LONGEST:
        return False
    clauses = [clause.strip() for clause in _STOP.split(text) if clause.strip()]
    return bool(clauses) and all(map(_is_talk, clauses))


def _is_talk(clause: str) -> bool:
    if _WHO.fullmatch(clause):
        return True
    words = [word.lower() for word in _WORD.findall(clause)]
    return any(word in _TALK for word in words) and all(word in _TALK | _FILLERS for word in words)
