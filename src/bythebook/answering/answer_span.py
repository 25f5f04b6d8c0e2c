"""Find the answer span: the few words of the answer's sentences that answer the question.

If the question asks for a date, a number, a person or an identifier, a match of that kind near
the question's words is marked. Rules for English. A wrong span is worse than none: questions that
match no rule, and ambiguous names, get no span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bythebook.language.stopwords import FUNCTION_WORDS
from bythebook.language.terms import term_ids
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.types import AnswerSpan

_NEAR = 4.0  # words: at this distance, a word of the question counts half

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_DATE = re.compile(
    rf"\b(?:{_MONTH} \d{{1,2}}(?:, \d{{4}})?|\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH},? \d{{4}}"
    r"|(?:1[0-9]|20)\d\d(?:s|[–-]\d{2,4})?|\d{1,2}(?:st|nd|rd|th) century|\d+ (?:BCE?|AD|CE)"
    rf"|{_MONTH}(?= of\b))"
    r"(?![,.]*\d|\w)"
)
_COUNTED = (
    r"(?:\d(?:[\d,.]*\d)?|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|"
    r"sixty|seventy|eighty|ninety|hundred|thousand|million|billion|half|dozen)\b)"
)
_NUMBER = re.compile(
    rf"[$€£¥]?{_COUNTED}(?:[- ](?:to |and )?{_COUNTED})*"
    r"(?: (?:hundred|thousand|million|billion|trillion)\b)?(?:\s?%| percent\b| per cent\b)?"
    r"(?:[ -](?:[mcµk]?m|[mk]?g|[mµ]?s|[kMG]?Hz|[kKMGT]B|[kM]?W|V|A|Nm?|°C|degrees?|miles?|"
    r"(?:milli|centi|kilo)?met(?:er|re)s?|feet|inch(?:es)?|centuries|decades?|years?|months?|"
    r"weeks?|days?|hours?|minutes?|(?:milli)?seconds?)\b)?",
    re.IGNORECASE,
)
_CAPITALISED = r"[A-ZÀ-Þ][\w'’&.-]*\w|[A-Z]\b"
# At least two words: a single capitalised word may start a sentence or be a month or a people.
_NAME = re.compile(
    rf"(?:{_CAPITALISED})(?: (?:(?:of|de|da|di|del|von|van|der|la|le|the) ){{0,2}}"
    rf"(?:{_CAPITALISED}))*(?<!['’]s)"
)
_IDENTIFIER = re.compile(r"(?<!\w)(?:--[a-z][\w-]+|/\w+(?:/\w+)*|[A-Za-z](?=\w*_\w)\w++)")


@dataclass(frozen=True, slots=True)
class _Kind:
    asked: re.Pattern[str]
    found: re.Pattern[str]
    least: float  # minimum share of the question's IDF, weighted by distance


def _when(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_KINDS = (
    _Kind(_when(r"\bwhen\b|\b(?:what|which) (?:year|date|decade|century|month|day)\b"), _DATE, 0.2),
    _Kind(
        _when(
            r"\bhow (?:many|much|long|far|often|old|large|big|fast|high|wide|heavy|deep|tall)\b|"
            r"\b(?:what|which) (?:percentage|percent|number|share|size|proportion|fraction)\b"
        ),
        _NUMBER,
        0.2,
    ),
    _Kind(_when(r"\b(?:who|whom|whose)\b"), _NAME, 0.35),
    _Kind(
        _when(
            r"\b(?:what|which) (?:\w+ ){0,2}?(?:command|variable|parameter|flag|option|topic|file|"
            r"package|library|tool|function|method|class|field|node|message|switch|argument)\b"
        ),
        _IDENTIFIER,
        0.1,
    ),
)


def find_answer_span(question: AnalyzedQuestion, sentences: Sequence[str]) -> AnswerSpan | None:
    """Return the best answer span, or None."""
    asked = question.terms
    kind = next((kind for kind in _KINDS if kind.asked.search(question.question.text)), None)
    if kind is None or not asked:
        return None
    found = [
        (_weight(sentence, start, end, asked), -number, AnswerSpan(number, start, end))
        for number, sentence in enumerate(sentences)
        if "\n" not in sentence
        for start, end in _candidates(kind.found, sentence, asked)
    ]
    weight, _, best = max(found, default=(0.0, 0, None), key=lambda each: each[:2])
    return best if weight > kind.least * sum(asked.values()) else None


def _candidates(
    pattern: re.Pattern[str], sentence: str, asked: Mapping[int, float]
) -> Iterator[tuple[int, int]]:
    """Yield the matches of the pattern; except for numbers, only those not in the question."""
    for found in pattern.finditer(sentence):
        start, end = found.span()
        if pattern is _NAME:
            first, _, others = found[0].partition(" ")
            if not others:
                continue  # a single word may just be the start of a sentence
            if first.lower() in FUNCTION_WORDS["en"]:
                start += len(first) + 1
        terms = term_ids(sentence[start:end])
        # The first term of an identifier is the whole; its parts may be words of the question.
        told = terms[:1] if pattern is _IDENTIFIER else terms
        if pattern is _NUMBER or (told and not any(term in asked for term in told)):
            yield start, end


def _weight(sentence: str, start: int, end: int, asked: Mapping[int, float]) -> float:
    """Sum the IDF of the question's words in the sentence, decreasing with distance."""
    words = [(found.start(), found.end()) for found in re.finditer(r"\S+", sentence)]
    first = sum(1 for _, last in words if last <= start)
    last = sum(1 for begin, _ in words if begin < end) - 1
    nearest: dict[int, float] = {}
    for place, (begin, stop) in enumerate(words):
        away = max(first - place, place - last, 0)
        for term in term_ids(sentence[begin:stop]):
            if term in asked and away:
                nearest[term] = min(away, nearest.get(term, away))
    return sum(asked[term] / (1 + away / _NEAR) for term, away in nearest.items())
