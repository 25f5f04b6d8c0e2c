"""Find the answer span: the few words of the answer that the reading model points to.

A wrong span is worse than none: only a short span of a passage that probably answers is marked, and
only where the answer shows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bythebook.types import AnswerSpan, Citation, Hit, Sentence

_MOST_WORDS_OF_FACT = 8
_MOST_WORDS = 4  # a longer span rarely answers another question: the whole run does
_LEAST_PROBABILITY = 0.5


def find_answer_span(
    hits: Sequence[Hit],
    sentences: Sequence[Sentence],
    citations: Sequence[Citation],
    *,
    is_fact: bool = True,
) -> AnswerSpan | None:
    """Return the span of the best hit that the answer cites, or None.

    ``is_fact``: a name, a number or a date was asked for.
    """
    most = _MOST_WORDS_OF_FACT if is_fact else _MOST_WORDS
    best = sorted(hits, key=lambda hit: -hit.answers)[: None if is_fact else 1]
    passages = {citation.number: citation.passage_id for citation in citations}
    for hit in best:
        reading = hit.reading
        if reading is None or reading.span is None or reading.probability < _LEAST_PROBABILITY:
            continue
        words = hit.passage.text[slice(*reading.span)].split()
        if not 0 < len(words) <= most:
            continue
        pattern = _in_a_row(words)
        for number, sentence in enumerate(sentences):
            cited = {passages[citation] for citation in sentence.citations}
            if hit.passage.id in cited and (match := pattern.search(sentence.text)):
                return AnswerSpan(number, match.start(), match.end())
    return None


def _in_a_row(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)")
