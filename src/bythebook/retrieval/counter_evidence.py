"""Signals that a passage does not contain the answer, although it is similar to the question.

The answer is probably elsewhere, or nowhere, if the passage lacks the rarest term, a name or a
number of the question, or if only the question negates. People judge by the same signs. Each
signal is an input of the calibrated score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress

from bythebook.language.english.lexicon import NEGATION_PATTERN
from bythebook.language.terms import covered, language_of_passage, term_ids
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.types import Passage, Signals, Unit


def add_counter_evidence(
    signals: Signals,
    question: AnalyzedQuestion,
    passage: Passage,
    unit_cosines: Sequence[float],
    informative: Sequence[bool] = (),
) -> Signals:
    """Return the signals of one passage with those against it.

    ``informative`` marks the units that add information to the question; the others do not count.
    """
    if any(informative) and not all(informative):
        signals = replace(signals, unit_cosine=max(compress(unit_cosines, informative)))
    nearest, words = _nearest_unit(question, passage, unit_cosines, informative)
    rarest = max(question.terms.values(), default=0.0)
    lacking = max((idf for term, idf in question.terms.items() if term not in words), default=0.0)
    text = passage.embedded_text.lower()
    return replace(
        signals,
        missing_rare_term=lacking / rarest if rarest else 0.0,
        negation_mismatch=float(question.negates and not NEGATION_PATTERN.search(nearest)),
        unmatched_entities=float(sum(entity not in text for entity in question.entities)),
        echo=float(bool(informative) and not any(informative)),
    )


def _nearest_unit(
    question: AnalyzedQuestion,
    passage: Passage,
    unit_cosines: Sequence[float],
    informative: Sequence[bool],
) -> tuple[str, set[int]]:
    """Return the unit nearest to the question by cosine and terms, and its terms."""
    language = language_of_passage(passage)
    nearest, words, most = passage.text, set[int](), float("-inf")
    units: Iterable[tuple[float, Unit]] = zip(unit_cosines, passage.units, strict=False)
    if any(informative):
        units = compress(units, informative)
    for cosine, unit in sorted(units, key=lambda pair: -pair[0]):
        if cosine + 0.5 <= most:  # terms add at most 0.5: later units cannot be nearer
            break
        text = passage.unit_text(unit)
        own = set(term_ids(text, language))
        near = cosine + covered(question.terms, own) / 2
        if near > most:
            nearest, words, most = text, own, near
    return nearest, words or set(term_ids(nearest, language))
