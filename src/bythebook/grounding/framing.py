"""Tell the words of a draft that claim nothing: connectives, and sentences that only announce.

"In contrast, kites need wind." claims that kites need wind. "Here is how it works:" claims
nothing; it is worth showing only before what it announces.
"""

from __future__ import annotations

import re

from bythebook.grounding.claim_parser import TermKind, parse_claim
from bythebook.grounding.stream_splitter import without_line_mark
from bythebook.language.english.lexicon import CONNECTIVES, FRAMING
from bythebook.language.terms import terms_of

_MOST_WORDS = 14  # of a sentence that only announces
_CONNECTIVE = re.compile(
    rf"(?:{'|'.join(re.escape(phrase) for phrase in sorted(CONNECTIVES, key=len, reverse=True))})"
    r"[ \t]*+,[ \t]*+(?=\w)",
    re.IGNORECASE,
)
_PARTICLE = re.compile(r"(?:yes|no)[ \t]*+[,:][ \t]*+(?=\w)", re.IGNORECASE)
_HERE = re.compile(r"here(?:['’]s| is| are)\b", re.IGNORECASE)
_ANNOUNCES = re.compile(
    r"\b(?:here(?:['’]s| is| are)|as follows|(?:the|these) following|in (?:summary|short)|"
    r"to (?:summari[sz]e|sum up)|(?:these|those) are|(?:the|these) (?:steps|reasons|ways)|"
    r"for (?:example|instance))\b",
    re.IGNORECASE,
)
_FRAMING_KEYS = frozenset(key for word in FRAMING for key in terms_of(word))


def without_connective(text: str) -> str:
    """Remove the line mark and the connectives at the start: "In short," or "However, also,"."""
    text = without_line_mark(text)
    while (connective := _CONNECTIVE.match(text)) is not None:
        text = text[connective.end() :]
    return text


def without_particle(text: str) -> str:
    """Remove a "Yes," or "No," at the start: what follows is the claim that can be verified."""
    particle = _PARTICLE.match(text)
    if particle is None:
        return text
    rest = text[particle.end() :]
    return rest[0].upper() + rest[1:]


def is_announcement(text: str, known: frozenset[str]) -> bool:
    """Return whether the text only announces what follows.

    It ends with a colon and has a word such as "here" or "following", or it begins with "here". It
    denies nothing and has no number or other word that is not ``known``: a key of the evidence.
    """
    text = without_connective(text).strip().strip("*_").rstrip()
    announces = _ANNOUNCES.search(text) if text.endswith(":") else _HERE.match(text)
    if announces is None or len(text.split()) > _MOST_WORDS:
        return False
    claim = parse_claim(text)
    return not claim.denials and all(
        term.key in known
        or (term.kind is TermKind.WORD and (term.is_light or _is_framing(term.key)))
        for term in claim.terms
    )


def _is_framing(key: str) -> bool:
    return key in _FRAMING_KEYS
