"""Hits are read by the reading model, and ordered by both judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from bythebook.errors import ReaderFailed
from bythebook.interfaces.models import SentenceSupport
from bythebook.retrieval.reranking import READ_HITS, rerank
from bythebook.retrieval.score import answers
from bythebook.types import Hit, Metadata, Passage, PassageReading
from tests.support.samples import evidence

_QUESTION = "When was the bridge opened?"


def _read(probability: float) -> PassageReading:
    return PassageReading(probability, None, (probability,))


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
        return [_read(self.probabilities[p.text]) for p in passages]

    async def support(
        self, sentences: Sequence[str], evidence: Sequence[Passage]
    ) -> list[SentenceSupport]:
        raise NotImplementedError


def _hits(*order: float) -> list[Hit]:
    hits = evidence(*(f"Passage number {number}." for number in range(len(order)))).hits
    return [
        replace(hit, order=odds, answers=answers(odds, None, vectors=True))
        for hit, odds in zip(hits, order, strict=True)
    ]


async def test_a_passage_that_answers_overtakes_one_that_is_only_similar() -> None:
    similar, answering = _hits(8.0, 7.5)
    reader = ScriptedReader({similar.passage.text: 0.02, answering.passage.text: 0.97})
    first, second = await rerank(_QUESTION, [similar, answering], reader)
    assert (first.passage, second.passage) == (answering.passage, similar.passage)
    assert (first.rank, second.rank) == (1, 2)
    assert first.answers > second.answers
    assert first.reading == PassageReading(0.97, None, (0.97,))


async def test_without_a_reader_nothing_changes() -> None:
    hits = _hits(8.0, 7.0)
    assert await rerank(_QUESTION, hits, None) == tuple(hits)


async def test_a_failing_reader_leaves_the_order() -> None:
    hits = _hits(8.0, 7.0)
    failing = ScriptedReader({}, failure=ReaderFailed("damaged"))
    assert await rerank(_QUESTION, hits, failing) == tuple(hits)


async def test_only_the_best_hits_are_read_and_the_others_stay_behind_them() -> None:
    hits = _hits(*[9.0 - number for number in range(READ_HITS + 2)])
    reader = ScriptedReader({hit.passage.text: 0.1 for hit in hits})
    ranked = await rerank(_QUESTION, hits, reader)
    assert len(reader.read_texts) == READ_HITS
    assert [hit.passage for hit in ranked[READ_HITS:]] == [hit.passage for hit in hits[READ_HITS:]]
    assert [hit.rank for hit in ranked] == list(range(1, len(hits) + 1))


async def test_passages_and_questions_in_other_languages_keep_their_places() -> None:
    english, german = _hits(8.0, 7.0)
    german = replace(german, passage=replace(german.passage, metadata=Metadata(language="de")))
    reader = ScriptedReader({english.passage.text: 0.9})
    ranked = await rerank(_QUESTION, [english, german], reader)
    assert {hit.passage.id: hit.answers for hit in ranked}[german.passage.id] == german.answers
    assert reader.read_texts == [english.passage.text]
    asked = "Wann wurde die Brücke für den Verkehr geöffnet und wer hat sie gebaut?"
    assert await rerank(asked, [english], reader) == (english,)


@pytest.mark.parametrize("hits", [[], _hits(4.0)])
async def test_few_hits_are_no_special_case(hits: list[Hit]) -> None:
    reader = ScriptedReader({hit.passage.text: 0.5 for hit in hits})
    assert len(await rerank(_QUESTION, hits, reader)) == len(hits)
