"""The gate: its refusals, and the confidence of the chat contract."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.gate import gate, gather, measure, name_unanswered
from bythebook.language.terms import Vocabulary
from bythebook.refusals import BOOK_DOES_NOT_SAY, SELECTION_DOES_NOT_SAY, Refusal, RefusalType
from bythebook.retrieval.question_analysis import analyze
from bythebook.retrieval.search import Findings
from bythebook.types import Evidence, Hit, Level, Question
from tests.support.samples import hit

_scores = st.lists(st.floats(0, 1), min_size=1, max_size=10)


def _hits(*scores: float) -> list[Hit]:
    ordered = sorted(scores, reverse=True)
    return [hit(f"text {n}", score=s, rank=n) for n, s in enumerate(ordered, 1)]


def _findings(question: Question, *hits: Hit, neighbours: tuple[Hit, ...] = ()) -> Findings:
    return Findings(analyze(question, Vocabulary()), hits, 0.0, 0.0, neighbours=neighbours)


def _decide(question: Question, *hits: Hit) -> Refusal | None:
    findings = _findings(question, *hits)
    return gate(findings.question, _gather(findings, 4000))


def _gather(findings: Findings, context_tokens: int) -> Evidence:
    return gather([findings], context_tokens=context_tokens)[0]


def test_refuses_with_empty_retrieval_without_hits() -> None:
    refusal = _decide(Question("q"))
    assert refusal is not None
    assert (refusal.type, refusal.text) == (RefusalType.EMPTY_RETRIEVAL, BOOK_DOES_NOT_SAY)


def test_refuses_with_low_relevance_below_the_minimum_score() -> None:
    refusal = _decide(Question("q", min_score=0.5), *_hits(0.49, 0.2))
    assert refusal is not None
    assert refusal.type is RefusalType.LOW_RELEVANCE


def test_accepts_one_hit_above_the_minimum_score() -> None:
    assert _decide(Question("q", min_score=0.5), *_hits(0.51, 0.2)) is None


def test_refuses_below_the_minimum_confidence() -> None:
    question = Question("q", min_score=0.7, min_confidence=Level.LOW)
    assert _decide(question, *_hits(0.75)) is not None
    assert _decide(question, *_hits(0.86)) is None
    assert _decide(question, *_hits(0.75, 0.74)) is None


def test_refuses_an_irrelevant_selection_with_its_own_text() -> None:
    refusal = _decide(Question("q", selection="something selected"), *_hits(0.1))
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
def test_levels_match_the_bands_of_the_chat_contract(
    scores: tuple[float, ...], top_k: int, level: Level
) -> None:
    assert measure(_hits(*scores), top_k=top_k).level is level


@given(_scores)
def test_average_is_between_minimum_and_maximum(scores: list[float]) -> None:
    measured = measure(_hits(*scores), top_k=5)
    assert measured.minimum <= measured.average <= measured.maximum
    assert measured.count == len(scores)


def test_drops_the_weakest_hits_over_the_token_budget() -> None:
    hits = [hit("word " * 100, score=0.9 - n / 10, section=f"S{n}") for n in range(4)]
    budget = hits[0].passage.tokens * 2
    evidence = _gather(_findings(Question("q", min_score=0.1), *hits), budget)
    assert evidence.hits == tuple(hits[:2])
    assert evidence.tokens <= budget


def test_neighbours_come_last_and_do_not_affect_confidence() -> None:
    beside, stranger = hit("The next paragraph.", score=0.2), hit("Another section.", score=0.2)
    found = hit("A kettle boils water.", score=0.9)
    found = replace(found, passage=replace(found.passage, neighbours=(beside.passage.id,)))
    alone = _gather(_findings(Question("Why?"), found), 1000)
    findings = _findings(Question("Why?"), found, neighbours=(beside, stranger))
    evidence = _gather(findings, 1000)
    assert evidence.hits == (found, beside)
    assert evidence.confidence == alone.confidence
    assert evidence.tokens == found.passage.tokens + beside.passage.tokens
    narrow = _gather(findings, evidence.tokens - 1)
    assert narrow.hits == (found,)


def test_refuses_how_many_if_the_selection_has_no_number() -> None:
    question = Question("How many views do I need?", selection="Calibration needs views.")
    for text, answers in (("Calibration needs views.", False), ("It needs ten views.", True)):
        assert (_decide(question, hit(text)) is None) is answers


def test_minimum_score_does_not_hide_weaker_hits_from_the_writer() -> None:
    strong, weak, poor = _hits(0.8, 0.4, 0.1)
    evidence = _gather(_findings(Question("q", min_score=0.5), strong, weak, poor), 4000)
    assert evidence.hits == (strong, weak)
    assert evidence.confidence.count == 1
    assert evidence.considered == (strong, weak, poor)


def test_minimum_of_the_evidence_bounds_what_the_writer_gets() -> None:
    strong, weak = _hits(0.8, 0.4)
    question = Question("q", min_score=0.5, min_evidence=0.5)
    assert _gather(_findings(question, strong, weak), 4000).hits == (strong,)


def test_part_without_a_hit_of_the_minimum_score_has_no_evidence() -> None:
    whole = _findings(Question("What is a kite, and what does a balloon cost?"), *_hits(0.8))
    kite = _findings(Question("What is a kite?"), hit("A kite flies.", score=0.9))
    cost = _findings(Question("what does a balloon cost?"), hit("A balloon rises.", score=0.2))
    vocabulary = Vocabulary.of([each.passage for each in (*kite.hits, *cost.hits)])
    cost = replace(cost, question=analyze(Question("what does a balloon cost?"), vocabulary))
    evidence, parts = gather([whole, kite, cost], context_tokens=4000)
    assert [bool(part.hits) for part in parts] == [True, True, False]
    assert {each.passage.text for each in evidence.hits} == {"text 1", "A kite flies."}
    missing = name_unanswered(parts)
    assert missing == "The book does not answer this part: “what does a balloon cost?”."
    assert name_unanswered(parts[:2]) is None


def _named(*names: str, score: float = 0.9) -> tuple[Hit, ...]:
    return tuple(hit(name, score=score - n / 100) for n, name in enumerate(names))


@given(
    st.lists(st.lists(st.floats(0, 1), max_size=6), min_size=1, max_size=5),
    st.integers(1, 6),
    st.booleans(),
)
def test_evidence_of_all_parts_is_at_most_top_k(
    scores: list[list[float]], top_k: int, is_side: bool
) -> None:
    whole, *others = (
        _findings(
            Question(f"q{part}", top_k=top_k),
            *(hit(f"text {part % 2} {n}", score=score) for n, score in enumerate(each)),
            neighbours=(hit(f"beside {part}", score=0.9),),
        )
        for part, each in enumerate(scores)
    )
    found = [whole, *(replace(each, is_side=is_side) for each in others)]
    evidence, parts = gather(found, context_tokens=4000)
    kept = {each.passage.id for each in evidence.hits}
    assert len(evidence.hits) == len(kept) <= top_k
    assert evidence.confidence.count <= len(kept)
    assert len(evidence.considered) <= top_k
    assert all(each.passage.id in kept for part in parts for each in part.hits)
    if len(others) < top_k:
        assert all(part.hits for part in parts[1:] if part.is_answered)


def test_every_part_keeps_its_best_hit_while_top_k_allows() -> None:
    whole = _findings(Question("a kite, and a balloon?", top_k=2), *_named("x", "y", "z"))
    kite = _findings(Question("a kite?"), *_named("kite", "x", score=0.7))
    balloon = _findings(Question("a balloon?"), *_named("balloon", score=0.6))
    evidence, parts = gather([whole, kite, balloon], context_tokens=4000)
    assert [each.passage.text for each in evidence.hits] == ["kite", "balloon"]
    assert [each.passage.text for each in parts[1].hits] == ["kite"]
    sides = [whole, *(replace(each, is_side=True) for each in (kite, balloon))]
    assert [each.passage.text for each in gather(sides, context_tokens=4000)[0].hits] == [
        "x",
        "kite",
    ]


def test_part_that_top_k_leaves_no_passage_for_is_named() -> None:
    whole = _findings(Question("a kite, and a balloon?", top_k=1), *_named("x"))
    kite = _findings(Question("a kite?"), *_named("kite"))
    balloon = _findings(Question("a balloon?"), *_named("balloon", score=0.6))
    _, parts = gather([whole, kite, balloon], context_tokens=4000)
    assert name_unanswered(parts) == (
        "With this top_k there is no passage left for this part: “a balloon?”."
    )
    sides = [whole, *(replace(each, is_side=True) for each in (kite, balloon))]
    assert name_unanswered(gather(sides, context_tokens=4000)[1]) is None


def test_neighbour_takes_the_place_of_a_weaker_hit() -> None:
    beside = hit("The next paragraph.", score=0.45)
    found, weak = hit("A kettle boils water.", score=0.9), hit("Tea is brewed.", score=0.4)
    found = replace(found, passage=replace(found.passage, neighbours=(beside.passage.id,)))
    findings = _findings(Question("Why?", top_k=2), found, weak, neighbours=(beside,))
    assert _gather(findings, 1000).hits == (found, beside)


def test_refusal_quotes_what_the_book_says_about_the_subject() -> None:
    text = "A kite flies in the wind. Kettles boil."
    found = replace(hit(text, score=0.2), unit_cosines=(0.6, 0.1))
    others = [hit(f"Number {n}.", section=f"S{n}").passage for n in range(9)]
    vocabulary = Vocabulary.of([found.passage, *others])
    question = analyze(Question("Does a kite fly at night?"), vocabulary)
    findings = Findings(question, (found,), 0.0, 0.0)
    refusal = gate(findings.question, _gather(findings, 4000))
    assert refusal is not None
    assert refusal.related is not None
    assert refusal.related.quote == "A kite flies in the wind."
    assert refusal.remark == "It does say, in “Section”: A kite flies in the wind."


def test_small_talk_is_refused_with_a_friendly_remark() -> None:
    refusal = _decide(Question("hello there"), *_hits(0.9))
    assert refusal is not None
    assert refusal.is_small_talk
    assert refusal.type is RefusalType.LOW_RELEVANCE
    assert refusal.remark is not None


def test_neighbours_have_the_score_of_their_own_part() -> None:
    beside = hit("A kettle boils.", score=0.1, section="S2")
    found = hit("A kite flies.", score=0.9)
    found = replace(found, passage=replace(found.passage, neighbours=(beside.passage.id,)))
    kite = _findings(Question("What is a kite?"), found, neighbours=(beside,))
    kettle = _findings(Question("What is a kettle?"), replace(beside, score=0.95))
    _, parts = gather([kite, kettle], context_tokens=4000)
    assert [each.score for each in parts[0].hits] == [0.9, 0.1]
