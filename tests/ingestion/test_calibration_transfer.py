"""Calibration weights are transferred to an embedder that was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.ingestion.calibration_transfer import (
    REFERENCE_MARKS,
    CosineMarks,
    fitted,
    marks_of,
    own_questions,
    sample_of,
)
from bythebook.interfaces.models import TextRole
from bythebook.interfaces.store import StoredVectors
from bythebook.providers.testing import FakeEmbedder
from bythebook.retrieval.calibration import MEASURED, Calibration
from bythebook.text.passage_records import vector_key
from bythebook.types import Passage, Signals
from tests.support.samples import passage

if TYPE_CHECKING:
    from bythebook.types import Vectors

SENTENCES = [
    "The kettle boils its water at one hundred degrees when the air is thin and calm.",
    "A gyroscope measures how quickly the body of the robot turns about each axis.",
    "Every publisher writes its messages to a topic that subscribers listen to.",
    "The planner searches a graph of poses for the cheapest path around obstacles.",
]


@dataclass
class Aloof:
    """An embedder with another idea of nearness: strangers already have most in common."""

    inner: FakeEmbedder = field(default_factory=FakeEmbedder)
    name: str = "fake:aloof"
    dimension: int = 65
    limit: int = 512

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        rows = await self.inner.embed(texts, role=role)
        common = np.full((len(rows), 1), 2.0, dtype=np.float32)
        vectors = np.hstack([rows, common])
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def book(pages: int = 12) -> list[Passage]:
    made = []
    for page in range(pages):
        text = f"{SENTENCES[page % len(SENTENCES)]} This is said on page number {page} alone."
        made.append(passage(text, file=f"page-{page}.md"))
    return made


async def stored(passages: Sequence[Passage], embedder: Aloof | FakeEmbedder) -> dict:
    vectors = {}
    for each in passages:
        texts = [each.embedded_text, *(each.unit_text(unit) for unit in each.units)]
        rows = await embedder.embed(texts, role="passage")
        vectors[vector_key(each)] = StoredVectors(vector_key(each), rows[0], rows[1:])
    return vectors


@pytest.mark.parametrize("embedder", [FakeEmbedder(), Aloof()])
async def test_the_source_is_nearer_than_other_pages(
    embedder: Aloof | FakeEmbedder,
) -> None:
    passages = book()
    marks = await marks_of(passages, await stored(passages, embedder), embedder)
    assert marks is not None
    assert marks.own_passage > marks.strange_passage
    assert marks.own_unit > marks.strange_unit


async def test_two_scales_give_like_scores() -> None:
    """The same signal, seen by two embedders, is judged alike after the fit."""
    passages = book()
    plain, aloof = FakeEmbedder(), Aloof()
    plain_marks = await marks_of(passages, await stored(passages, plain), plain)
    aloof_marks = await marks_of(passages, await stored(passages, aloof), aloof)
    assert plain_marks
    assert aloof_marks
    assert aloof_marks.strange_unit > plain_marks.strange_unit + 0.3
    for share in (0.0, 0.5, 1.0):
        scores = [
            fitted(marks).scores([_between(marks, share)])[0]
            for marks in (plain_marks, aloof_marks)
        ]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def _between(marks: CosineMarks, share: float) -> Signals:
    return Signals(
        passage_cosine=marks.strange_passage + share * (marks.own_passage - marks.strange_passage),
        unit_cosine=marks.strange_unit + share * (marks.own_unit - marks.strange_unit),
        term_weight=0.2,
        coverage=0.4,
    )


async def test_a_short_book_gives_no_marks() -> None:
    passages = book(3)
    assert await marks_of(passages, await stored(passages, FakeEmbedder()), FakeEmbedder()) is None


def test_questions_do_not_depend_on_the_order_of_the_book() -> None:
    passages = book()
    asked = own_questions(sample_of(passages))
    assert asked == own_questions(sample_of(passages[::-1]))
    assert all(question.text in question.home.text for question in asked)


@given(st.tuples(*[st.floats(-1, 1)] * 4))
def test_any_marks_give_usable_weights(values: tuple[float, float, float, float]) -> None:
    calibration = fitted(CosineMarks(*values))
    scores = calibration.scores([Signals(0.5, 0.6, 0.3, 0.4), Signals()])
    assert all(0 <= score <= 1 for score in scores)
    assert Calibration.from_json(calibration.to_json()) == calibration


def test_the_reference_keeps_its_own_weights() -> None:
    carried = fitted(REFERENCE_MARKS)
    known = MEASURED["local:minilm-int8"]
    assert carried == replace(
        known,
        passage_cosine=pytest.approx(known.passage_cosine),
        unit_cosine=pytest.approx(known.unit_cosine),
        bias=pytest.approx(known.bias),
    )
