"""Classify the kind of answer a question asks for: a definition, steps, code or a number.

Rules for English questions. A question that matches no rule has no type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bythebook.language.english.lexicon import either

_CODE = re.compile(
    r"\b(code|command|snippet|script|syntax|show me|example of|how (do|can) (i|you) "
    r"(run|start|launch|build|install|call|write|create|declare))\b",
    re.IGNORECASE,
)
_STEPS = re.compile(r"\b(how (do|can|should) (i|we|you)|how to|steps?|procedure)\b", re.IGNORECASE)
_DEFINITION = re.compile(  # of a question with single spaces and no final punctuation
    r"(?:(?:what|who)(?:['’]s| is| are| was| were)|what does|define|explain|describe) "
    r"(?:an? |the )?(?P<term>.+?)(?: (?:mean|stand for))?",
    re.IGNORECASE,
)
_LONGEST_TERM = 4  # words
# "What is a URDF file?" is answered by "URDF is …".
_KIND = re.compile(
    r"(?<!\s)\s+(?:files?|formats?|methods?|algorithms?|functions?|commands?|tools?|packages?|"
    r"library|systems?|models?|problems?|techniques?)\b",
    re.IGNORECASE,
)
_NUMBER_ASKED = re.compile(
    r"\b(how (many|much|long|far|often|old|large|big|fast|high|wide|heavy|deep|tall)|"
    r"(what|which) (year|date|percentage|percent|number|share|size|value)|(since |until )?when)\b",
    re.IGNORECASE,
)
_FACT_ASKED = re.compile(  # at the beginning of the question
    r"\W*(?:(?:and|so|but) )?(?:who|whom|whose|when (?:did|was|were|does|will)|"
    r"in (?:what|which) year|how (?:many|much|long|far|often|old|large|big|fast|high|wide|heavy|"
    r"deep|tall|expensive)|(?:what|which) (?:year|date|percentage|percent|number|share|size|value)|"
    r"what is the (?:name|price|cost|weight|size|number|date))\b",
    re.IGNORECASE,
)
_COUNT_ASKED = re.compile(r"\bhow many\b", re.IGNORECASE)
_NUMBER = re.compile(
    rf"\d|\b({either('numbers', 'tens', 'counts')}|third|quarter|once|twice|several|infinity|"
    r"never|always)\b",
    re.IGNORECASE,
)
_SAYS_WHAT = (
    r"(?:\s*\([^)]*\))?(?:,[^,.]*,)?\s*(?:[:–—]|\b(?:is|are|was|were|means?|refers?|denotes?|"
    r"describes?|stands? for|consists?|defines?)\b)"
)


@dataclass(frozen=True, slots=True)
class QuestionType:
    code: bool = False
    steps: bool = False
    number: bool = False
    count: bool = False  # only a number can answer
    fact: bool = False  # a name, a number or a date answers
    definition: str = ""  # the term to define; empty: none

    def is_defined_by(self, text: str) -> bool:
        """Return whether the text starts with a definition of the term."""
        if not self.definition:
            return False
        return bool(_defining(_KIND.sub("", self.definition) or self.definition).match(text))

    def is_counted_by(self, text: str) -> bool:
        """Return whether a number was asked for and the text has one."""
        return self.number and bool(_NUMBER.search(text))


def _defining(term: str) -> re.Pattern[str]:
    article = r"\W{0,3}(?:(?:an?|the)\s+)?\W{0,3}"
    named = re.escape(term).replace(r"\ ", r"\s+") + f"(?:{_KIND.pattern})?"
    return re.compile(f"{article}{named}(?:e?s)?\\W{{0,3}}{_SAYS_WHAT}", re.IGNORECASE)


def question_type(question: str) -> QuestionType:
    defined = _DEFINITION.fullmatch(" ".join(question.split()).rstrip("?.! "))
    term = defined["term"].strip("\"'“”‘’`*") if defined else ""
    return QuestionType(
        code=bool(_CODE.search(question)),
        steps=bool(_STEPS.search(question)),
        number=bool(_NUMBER_ASKED.search(question)),
        count=bool(_COUNT_ASKED.search(question)),
        fact=bool(_FACT_ASKED.match(question)),
        definition=term if 0 < len(term.split()) <= _LONGEST_TERM else "",
    )
