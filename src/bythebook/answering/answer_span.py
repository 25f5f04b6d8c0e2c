"""Find the answer span: the few words of the answer's sentences that answer the question.

If the question asks for a date, a number, a person or an identifier, a match of that kind near
the question's words is marked. Rules for English. A wrong span is worse than none: questions that
match no rule, and ambiguous names, get no span.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bythebook.language.english.lexicon import either
from bythebook.language.stopwords import FUNCTION_WORDS
from bythebook.language.terms import term_ids
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.types import AnswerSpan

_NEAR = 4.0  # words: at this distance, a word of the question counts half


@dataclass(frozen=True, slots=True)
class _AnswerKind:
    name: str
    asked: re.Pattern[str]
    answer: re.Pattern[str]
    min_share: float


@cache
def _answer_kinds() -> tuple[_AnswerKind, ...]:
    text = files("bythebook.language.english").joinpath("answer_kinds.toml").read_text("utf-8")
    rules = tomllib.loads(text)
    fragments = {**rules["fragments"], "NUMBER_WORD": either("numbers", "tens", "counts")}

    def compiled(parts: Sequence[str]) -> re.Pattern[str]:
        pattern = "".join(parts)
        for name, fragment in fragments.items():
            pattern = pattern.replace(f"<{name}>", fragment)
        return re.compile(pattern)

    return tuple(
        _AnswerKind(
            kind["name"],
            re.compile(kind["asked"], re.IGNORECASE),
            compiled(kind["answer"]),
            kind["min_share"],
        )
        for kind in rules["kinds"]
    )


def find_answer_span(question: AnalyzedQuestion, sentences: Sequence[str]) -> AnswerSpan | None:
    """Return the best answer span, or None."""
    terms, text = question.terms, question.question.text
    kind = next((kind for kind in _answer_kinds() if kind.asked.search(text)), None)
    if kind is None or not terms:
        return None
    candidates = [
        (_weight(sentence, start, end, terms), -number, AnswerSpan(number, start, end))
        for number, sentence in enumerate(sentences)
        if "\n" not in sentence
        for start, end in _candidates(kind, sentence, terms)
    ]
    weight, _, best = max(candidates, default=(0.0, 0, None), key=lambda candidate: candidate[:2])
    return best if weight > kind.min_share * sum(terms.values()) else None


def _candidates(
    kind: _AnswerKind, sentence: str, asked: Mapping[int, float]
) -> Iterator[tuple[int, int]]:
    """Yield the matches of this kind; except for numbers, only those not in the question."""
    for match in kind.answer.finditer(sentence):
        start, end = match.span()
        if kind.name == "person":
            first, _, others = match[0].partition(" ")
            if not others:
                continue  # a single word may just be the start of a sentence, a month or a people
            if first.lower() in FUNCTION_WORDS["en"]:
                start += len(first) + 1
        terms = term_ids(sentence[start:end])
        # The first term of an identifier is the whole; its parts may be words of the question.
        own = terms[:1] if kind.name == "identifier" else terms
        if kind.name == "number" or (own and not any(term in asked for term in own)):
            yield start, end


def _weight(sentence: str, start: int, end: int, asked: Mapping[int, float]) -> float:
    """Sum the IDF of the question's words in the sentence, decreasing with distance."""
    words = [match.span() for match in re.finditer(r"\S+", sentence)]
    first = sum(1 for _, stop in words if stop <= start)
    last = sum(1 for begin, _ in words if begin < end) - 1
    nearest: dict[int, float] = {}
    for index, (begin, stop) in enumerate(words):
        distance = max(first - index, index - last, 0)
        for term in term_ids(sentence[begin:stop]):
            if term in asked and distance:
                nearest[term] = min(distance, nearest.get(term, distance))
    return sum(asked[term] / (1 + distance / _NEAR) for term, distance in nearest.items())
