"""The answer span: what the reading model points to, where the answer shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bythebook.answering.answer_span import find_answer_span
from bythebook.types import AnswerSpan, Citation, Hit, PassageReading, Sentence
from tests.support.samples import evidence

_TEXT = "The bridge was opened on 4 May 1932. It is painted green."


def _hit(words: str, probability: float = 0.9, score: float = 0.9) -> Hit:
    (hit,) = evidence(_TEXT).hits
    start = _TEXT.index(words)
    reading = PassageReading(probability, (start, start + len(words)), (probability,))
    return replace(hit, score=score, reading=reading)


def _find(hit: Hit, *sentences: str, passage_id: str | None = None) -> AnswerSpan | None:
    place = hit.passage.place
    cited = Citation(1, passage_id or hit.passage.id, place, "", place.url, place.url, 0.9)
    return find_answer_span([hit], [Sentence(text, (1,)) for text in sentences], [cited])


def test_marks_the_span_in_the_sentence_that_shows_it() -> None:
    assert _find(_hit("4 May 1932"), "It is green.", "It opened on 4\nMay 1932.") == AnswerSpan(
        1, 13, 23
    )


@pytest.mark.parametrize(
    ("hit", "sentence"),
    [
        (_hit("4 May 1932", probability=0.3), "It opened on 4 May 1932."),  # it hardly answers
        (_hit("4 May 1932"), "It was opened."),  # the answer does not show it
        (_hit("4 May"), "It opened on 14 May."),  # only part of a word
        (_hit(_TEXT), _TEXT),  # too long to be a span
    ],
)
def test_marks_nothing_that_may_be_wrong(hit: Hit, sentence: str) -> None:
    assert _find(hit, sentence) is None


def test_the_span_of_another_hit_is_marked_only_for_facts() -> None:
    best, other = replace(_hit("green", probability=0.1), score=0.95), _hit("4 May 1932")
    place = other.passage.place
    cited = Citation(1, other.passage.id, place, "", place.url, place.url, 0.9)
    for is_fact in (True, False):
        sentences = [Sentence(_TEXT, (1,))]
        found = find_answer_span([best, other], sentences, [cited], is_fact=is_fact)
        assert (found is not None) is is_fact


def test_only_a_fact_has_a_long_span() -> None:
    hit = _hit("The bridge was opened on 4 May 1932")
    place = hit.passage.place
    cited = Citation(1, hit.passage.id, place, "", place.url, place.url, 0.9)
    for is_fact in (True, False):
        found = find_answer_span([hit], [Sentence(_TEXT, (1,))], [cited], is_fact=is_fact)
        assert (found is not None) is is_fact


def test_marks_nothing_in_a_sentence_that_cites_another_passage() -> None:
    assert _find(_hit("4 May 1932"), "It opened on 4 May 1932.", passage_id="other") is None


def test_marks_nothing_without_a_reading() -> None:
    hit = replace(_hit("4 May 1932"), reading=None)
    assert _find(hit, "It opened on 4 May 1932.") is None
