"""Find what a question compares: "What is the difference between X and Y?", "X vs Y".

Rules for English.
"""

from __future__ import annotations

import re

from bythebook.language.terms import terms_of

_MOST_SIDES = 3
_LONGEST = 4  # words of one side
_MOST_READ = 300  # characters of the question
# For text with single blanks.
_VERSUS = re.compile(r" (?:vs\.?|versus) ", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween (.{2,120}?) and ([^?.,;:]{2,60})", re.IGNORECASE)
_DIFFERS = re.compile(
    r"\b(?:does|do|is|are) (.{2,80}?) (?:differ|different|compare|compared) "
    r"(?:from|to|with|than) ([^?.,;:]{2,60})",
    re.IGNORECASE,
)
_COMPARE = re.compile(
    r"\bcompare (.{2,80}?) (?:and|with|to|against) ([^?.,;:]{2,60})", re.IGNORECASE
)
_OR_WHICH = re.compile(
    r"\A(.{2,80}?) or ([^?,:;–—-]{2,60}?) ?[?,:;–—-] ?(?:how|which|what|when)\b", re.IGNORECASE
)
_LEADING = re.compile(
    r"\A(?:.{0,80}\b(?:differences?|pros and cons|advantages) (?:of|in|between) |"
    r"(?:a|an|the|using|one) )",
    re.IGNORECASE,
)
_ENDING = re.compile(r"[?,.;:–—-]| (?:in|for|when|which|what|how|on|at|with) ", re.IGNORECASE)


def compared(question: str) -> tuple[str, ...]:
    """Return the things that a question compares, or an empty tuple."""
    text = " ".join(question[:_MOST_READ].split())
    found = next(
        (
            match.groups()
            for pattern in (_BETWEEN, _DIFFERS, _COMPARE, _OR_WHICH)
            if (match := pattern.search(text))
        ),
        None,
    )
    sides = list(found) if found else _VERSUS.split(text)
    named = [_name(side) for side in sides[:_MOST_SIDES]]
    if len(named) < 2 or not all(
        0 < len(name.split()) <= _LONGEST and terms_of(name) for name in named
    ):
        return ()
    return tuple(named)


def _name(side: str) -> str:
    side = _LEADING.sub("", side.strip())
    return _ENDING.split(f"{side} ", maxsplit=1)[0].strip(" \"'")
