"""The gate: enough evidence, or which refusal; and the confidence of the chat contract."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.gate import gate, gather, measure
from bythebook.answering.routing import plan
from bythebook.types import (
    BOOK_DOES_NOT_SAY,
    SELECTION_DOES_NOT_SAY,
    Hit,
    Level,
    Question,
    Refusal,
    RefusalType,
)
from tests.samples import hit

_scores = st.lists(st.floats(0, 1), min_size=1, max_size=10)


def _hits(*scores: float) -> list[Hit]:
    ordered = sorted(scores, reverse=True)
    return [hit(f"text {n}", score=s, rank=n) for n, s in enumerate(ordered, 1)]


def _decide(question: Question, *scores: float) -> Refusal | None:
    evidence = gather(question, _hits(*scores), context_tokens=4000)
    return gate(question, plan(question), evidence)


def test_nothing_found_is_an_empty_retrieval() -> None:
    refusal = _decide(Question("q"))
    assert refusal is not None
    assert (refusal.type, refusal.text) == (RefusalType.EMPTY_RETRIEVAL, BOOK_DOES_NOT_SAY)


def test_everything_below_the_floor_is_low_relevance() -> None:
    refusal = _decide(Question("q", floor=0.5), 0.49, 0.2)
    assert refusal is not None
    assert refusal.type is RefusalType.LOW_RELEVANCE


def test_one_passage_above_the_floor_is_enough() -> None:
    assert _decide(Question("q", floor=0.5), 0.51, 0.2) is None


def test_a_contract_may_need_more_than_the_floor() -> None:
    question = Question("q", floor=0.7, needs=Level.LOW)
    assert _decide(question, 0.75) is not None
    assert _decide(question, 0.86) is None
    assert _decide(question, 0.75, 0.74) is None


def test_a_selection_that_does_not_answer_has_its_own_sentence() -> None:
    refusal = _decide(Question("q", selection="something selected"), 0.1)
    assert refusal is not None
    assert refusal.type is RefusalType.SELECTED_TEXT_MISSING
    assert refusal.text == SELECTION_DOES_NOT_SAY


@pytest.mark.parametrize(
    ("scores", "top_k", "level"),
    [
        ((0.9, 0.9, 0.9, 0.9, 0.9), 5, Level.HIGH),
        ((0.9, 0.9, 0.9, 0.9), 4, Level.HIGH),
        ((0.8, 0.8, 0.8), 5, Level.MEDIUM),
        ((0.86,), 5, Level.MEDIUM),
        ((0.7, 0.7), 5, Level.LOW),
        ((0.8,), 5, Level.INSUFFICIENT),
        ((0.55, 0.55), 5, Level.INSUFFICIENT),
        ((), 5, Level.INSUFFICIENT),
    ],
)
def test_levels_follow_the_bands(scores: tuple[float, ...], top_k: int, level: Level) -> None:
    assert measure(_hits(*scores), top_k=top_k).level is level


@given(_scores)
def test_the_average_lies_between_the_extremes(scores: list[float]) -> None:
    measured = measure(_hits(*scores), top_k=5)
    assert measured.minimum <= measured.average <= measured.maximum
    assert measured.count == len(scores)


def test_context_over_the_budget_drops_the_weakest() -> None:
    hits = [hit("word " * 100, score=0.9 - n / 10, section=f"S{n}") for n in range(4)]
    budget = hits[0].passage.tokens * 2
    evidence = gather(Question("q", floor=0.1), hits, context_tokens=budget)
    assert evidence.hits == tuple(hits[:2])
    assert evidence.tokens <= budget


def test_what_stands_beside_a_hit_comes_last_and_lends_no_confidence() -> None:
    beside, stranger = hit("The next paragraph.", score=0.2), hit("Another section.", score=0.2)
    found = hit("A kettle boils water.", score=0.9)
    found = replace(found, passage=replace(found.passage, neighbours=(beside.passage.id,)))
    alone = gather(Question("Why?"), [found], context_tokens=1000)
    evidence = gather(Question("Why?"), [found], context_tokens=1000, around=[beside, stranger])
    assert evidence.hits == (found, beside)
    assert evidence.confidence == alone.confidence
    assert evidence.tokens == found.passage.tokens + beside.passage.tokens
    narrow = gather(Question("Why?"), [found], context_tokens=evidence.tokens - 1, around=[beside])
    assert narrow.hits == (found,)


def test_a_selection_without_a_number_does_not_say_how_many() -> None:
    question = Question("How many views do I need?", selection="Calibration needs views.")
    for text, answers in (("Calibration needs views.", False), ("It needs ten views.", True)):
        evidence = gather(question, [hit(text)], context_tokens=100)
        assert (gate(question, plan(question), evidence) is None) is answers
