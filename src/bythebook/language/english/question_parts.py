"""Split a question into the questions it consists of: "What is X, and how do I use it?".

Rules for English. A part starts with a question word or an auxiliary verb after "and", a comma or
a question mark, and has words of its own.
"""

from __future__ import annotations

import re

from bythebook.language.terms import terms_of

_MOST_PARTS = 4
_ASKS = (
    r"(?:what|who|whom|whose|when|where|which|why|how|do|does|did|can|could|should|shall|is|are|"
    r"will|would)"
)
_AFTER_STOP = re.compile(r"(?<=[?!.;])\s+")
_AFTER_AND = re.compile(rf",?\s(?:and|but|or)\s+(?:also\s+|then\s+)?(?={_ASKS}\b)", re.IGNORECASE)
_IS_QUESTION = re.compile(rf"(?:(?:and|but|or|so|also|then)\s+)*{_ASKS}\b", re.IGNORECASE)


def split_parts(question: str) -> tuple[str, ...]:
    """Return the parts of a question, or an empty tuple if it has only one."""
    sentences = [part.strip() for part in _AFTER_STOP.split(question) if part.strip()]
    asked = [sentence for sentence in sentences if _is_asked(sentence, alone=len(sentences) == 1)]
    parts = [part.strip(" ,") for sentence in asked for part in _AFTER_AND.split(sentence)]
    parts = [part for part in parts if _IS_QUESTION.match(part) and terms_of(part)]
    return tuple(parts[:_MOST_PARTS]) if len(parts) > 1 else ()


def _is_asked(sentence: str, *, alone: bool) -> bool:
    return alone or sentence.endswith("?") or bool(_IS_QUESTION.match(sentence))
