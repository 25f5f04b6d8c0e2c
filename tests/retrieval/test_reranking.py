"""Hits are read by the reading model, and their scores combine both judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import ReaderFailed
from bythebook.interfaces.models import SentenceSupport
from bythebook.language.terms import Vocabulary
from bythebook.retrieval.question_analysis import AnalyzedQuestion, analyze
from bythebook.retrieval.reranking import CALIBRATION, READ_HITS, rerank
from bythebook.types import Hit, Metadata, Passage, PassageReading, Question
from tests.support.samples import evidence

_QUESTION = "When was the bridge opened?"


@dataclass
class ScriptedReader:
    """Reader that gives each passage the probability noted for its text."""

    probabilities: dict[str, float]
    name: str = "test:scripted"
    failure: ReaderFailed | None = None
    read_texts: list[str] = field(default_factory=list)

    async def prepare(self) -> None:
        """Do nothing."""

    async def read(self, question: str, passages: Sequence[Passage]) -> list[PassageReading]:
        del question
        if self.failure is not None:
            raise self.failure
        self.read_texts += [passage.text for passage in passages]
        return [PassageReading(self.probabilities[p.text], None, 0) for p in passages]

    async def support(
        self, sentences: Sequence[str], evidence: Sequence[Passage]
    ) -> list[SentenceSupport]:
        raise NotImplementedError


def _asked(text: str) -> AnalyzedQuestion:
    """Analyse a question whose words all occur in the book."""
    return analyze(Question(text), Vocabulary.of(_passages(text, f"Again: {text}")))


def _hits(*scores: float) -> list[Hit]:
    texts = [f"Passage number {number}." for number in range(len(scores))]
    hits = evidence(*texts).hits
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]


async def test_a_passage_that_answers_overtakes_one_that_is_only_similar() -> None:
    similar, answering = _hits(0.8, 0.7)
    reader = ScriptedReader({similar.passage.text: 0.02, answering.passage.text: 0.97})
    first, second = await rerank(_asked(_QUESTION), [similar, answering], reader)
    assert (first.passage, second.passage) == (answering.passage, similar.passage)
    assert (first.rank, second.rank) == (1, 2)
    assert first.score > 0.5 > second.score
    assert first.reading == PassageReading(0.97, None, 0)


async def test_without_a_reader_nothing_changes() -> None:
    hits = _hits(0.8, 0.7)
    assert await rerank(_asked(_QUESTION), hits, None) == tuple(hits)


async def test_a_failing_reader_leaves_the_retrieval_scores() -> None:
    hits = _hits(0.8, 0.7)
    assert await rerank(
        _asked(_QUESTION), hits, ScriptedReader({}, failure=ReaderFailed("damaged"))
    ) == (tuple(hits))


async def test_only_the_best_hits_are_read_and_the_others_stay_behind_them() -> None:
    hits = _hits(*[0.9 - 0.05 * number for number in range(READ_HITS + 2)])
    reader = ScriptedReader({hit.passage.text: 0.1 for hit in hits})
    ranked = await rerank(_asked(_QUESTION), hits, reader)
    assert len(reader.read_texts) == READ_HITS
    assert [hit.passage for hit in ranked[READ_HITS:]] == [hit.passage for hit in hits[READ_HITS:]]
    assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)
    assert [hit.rank for hit in ranked] == list(range(1, len(hits) + 1))


async def test_passages_and_questions_in_other_languages_keep_their_scores() -> None:
    english, german = _hits(0.8, 0.7)
    german = replace(german, passage=replace(german.passage, metadata=Metadata(language="de")))
    reader = ScriptedReader({english.passage.text: 0.9})
    ranked = await rerank(_asked(_QUESTION), [english, german], reader)
    assert {hit.passage.id: hit.score for hit in ranked}[german.passage.id] == 0.7
    assert reader.read_texts == [english.passage.text]
    asked = "Wann wurde die Brücke für den Verkehr geöffnet und wer hat sie gebaut?"
    assert await rerank(_asked(asked), [english], reader) == (english,)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_score_grows_with_both_judgements(one: float, two: float, other: float) -> None:
    low, high = sorted((one, two))
    assert 0 < CALIBRATION.score(low, other) <= CALIBRATION.score(high, other) < 1
    assert 0 < CALIBRATION.score(other, low) <= CALIBRATION.score(other, high) < 1


@pytest.mark.parametrize("hits", [[], _hits(0.4)])
async def test_few_hits_are_no_special_case(hits: list[Hit]) -> None:
    reader = ScriptedReader({hit.passage.text: 0.5 for hit in hits})
    assert len(await rerank(_asked(_QUESTION), hits, reader)) == len(hits)


async def test_name_that_no_passage_has_lowers_the_scores() -> None:
    (hit,) = _hits(0.35)
    reader = ScriptedReader({hit.passage.text: 0.35})
    known, unknown = [
        (await rerank(_asked(f"Is {name} better for this?"), [hit], reader))[0].score
        for name in ("Passage", "Unity")
    ]
    assert known > 0.5 > unknown


async def test_the_reader_decides_more_about_facts_than_about_explanations() -> None:
    (hit,) = _hits(0.9)
    reader = ScriptedReader({hit.passage.text: 0.1})
    fact, explanation = [
        (await rerank(_asked(question), [hit], reader))[0].score
        for question in ("How many wheels are there?", "Why are there wheels?")
    ]
    assert explanation > 0.5 > fact


async def test_word_that_the_book_has_at_most_once_lowers_the_scores() -> None:
    (hit,) = _hits(0.6)
    reader = ScriptedReader({hit.passage.text: 0.6})
    often = [evidence(f"Passage about json {n}.").hits[0].passage for n in range(3)]
    once = [*often[:1], *_passages("Passage about kites.", "Passage about lamps.")]
    common, rare = [
        (await rerank(analyze(Question("Is json fast?"), book), [hit], reader))[0].score
        for book in (
            Vocabulary.of([*often, *_passages("It is fast.", "Fast it is.")]),
            Vocabulary.of(once),
        )
    ]
    assert common > rare


def _passages(*texts: str) -> list[Passage]:
    return [hit.passage for hit in evidence(*texts).hits]


async def test_words_that_the_book_never_has_lower_the_scores_further() -> None:
    (hit,) = _hits(0.8)
    reader = ScriptedReader({hit.passage.text: 0.6})
    book = Vocabulary.of(_passages("A kite flies.", "A kite lands.", "A lamp shines once."))
    scores = [
        (await rerank(analyze(Question(asked, **options), book), [hit], reader))[0].score
        for asked, options in (
            ("kite or kites", {}),
            ("kite or lamp", {}),
            ("serde or tokio", {}),
            ("serde or tokio", {"selection": "serde", "selection_only": True}),
        )
    ]
    known, rare, unknown, selected = scores
    assert known == selected > rare > 0.5 > unknown
