"""Scores are probabilities from weights in a file, and can be added up by hand."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import BookError
from bythebook.interfaces.store import Candidate, Generation
from bythebook.language.terms import Vocabulary
from bythebook.retrieval import score
from bythebook.retrieval.question_analysis import AnalyzedQuestion, analyze
from bythebook.types import Hit, PassageReading, Question, Signals, VectorState
from tests.support.samples import evidence

_SHARE = st.floats(0, 1)
_VECTORS = st.booleans()
_GENERATION = Generation("g", "local:minilm-int8", 384, 1, "f", b"")


def _asked(text: str = "When was the bridge opened?") -> AnalyzedQuestion:
    return analyze(Question(text), Vocabulary.of([_hit().passage]))


def _hit(text: str = "The bridge was opened in 1936.", *, read: float | None = 0.9) -> Hit:
    (hit,) = evidence(text).hits
    reading = None if read is None else PassageReading(read, None, (read,))
    return replace(hit, reading=reading, answers=score.answers(hit.order, reading, vectors=True))


@given(st.builds(Signals, *[_SHARE] * 6), _VECTORS)
def test_similarity_is_a_probability(signals: Signals, vectors: bool) -> None:
    assert 0 <= score.similarity(signals, None, vectors=vectors) <= 1


@given(st.floats(-5, 15), _SHARE, _SHARE, _VECTORS)
def test_a_passage_that_is_read_as_an_answer_answers_more_probably(
    order: float, one: float, other: float, vectors: bool
) -> None:
    low, high = (
        score.answers(order, PassageReading(read, None, (read,)), vectors=vectors)
        for read in sorted((one, other))
    )
    assert 0 <= low <= high <= 1


@given(_SHARE, _VECTORS)
def test_the_evidence_adds_up_by_hand(read: float, vectors: bool) -> None:
    seen, weights = score.evidence_for(_asked(), [_hit(read=read)], vectors=vectors)
    odds = sum(value * weight for _, value, weight in score.contributions(weights, seen))
    found = score.answerability(_asked(), [_hit(read=read)], vectors=vectors)
    assert found == pytest.approx(1 / (1 + math.exp(-odds)))


def test_nothing_found_answers_nothing() -> None:
    assert score.answerability(_asked(), [], vectors=True) == 0


def test_evidence_that_was_not_read_has_weights_of_its_own() -> None:
    for vectors in (True, False):
        assert 0 < score.answerability(_asked(), [_hit(read=None)], vectors=vectors) < 1


def test_names_and_numbers_that_a_passage_lacks_are_counted() -> None:
    passage = _hit().passage
    assert score.unmatched(_asked("When was the bridge opened?"), passage) == 0
    assert score.unmatched(_asked("Was the bridge of Strauss opened in 1937?"), passage) == 2


# --- the scale of cosines -------------------------------------------------------------------------


def test_known_embedders_have_marks_and_others_are_compared_by_words() -> None:
    assert score.marks_of(_GENERATION) == score.MEASURED["local:minilm-int8"]
    assert score.marks_of(replace(_GENERATION, embedder="openai:unknown")) is None
    assert score.marks_of(replace(_GENERATION, vectors=VectorState.PENDING)) is None


def test_marks_of_a_book_survive_the_catalog() -> None:
    marks = score.CosineMarks(0.7, 0.9, 0.75, 0.95)
    kept = replace(_GENERATION, embedder="openai:unknown", calibration=marks.to_json())
    assert score.marks_of(kept) == marks
    assert marks.scaled(Candidate("a", "a", 0.8, 0.85, {})) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"strange_passage": 1})])
def test_damaged_marks_are_named(text: str) -> None:
    with pytest.raises(BookError, match="calibration"):
        score.marks_of(replace(_GENERATION, calibration=text))
