"""The scale of an embedder's cosines is measured on the book."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bythebook.ingestion.cosine_marks import measure, own_questions, sample_of
from bythebook.interfaces.models import TextRole
from bythebook.interfaces.store import Candidate, StoredVectors
from bythebook.providers.testing import FakeEmbedder
from bythebook.retrieval.score import CosineMarks
from bythebook.text.passage_records import vector_key
from bythebook.types import Passage
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
    marks = await measure(passages, await stored(passages, embedder), embedder)
    assert marks is not None
    assert marks.own_passage > marks.strange_passage
    assert marks.own_unit > marks.strange_unit


async def test_two_embedders_have_one_scale() -> None:
    passages = book()
    plain, aloof = FakeEmbedder(), Aloof()
    plain_marks = await measure(passages, await stored(passages, plain), plain)
    aloof_marks = await measure(passages, await stored(passages, aloof), aloof)
    assert plain_marks
    assert aloof_marks
    assert aloof_marks.strange_unit > plain_marks.strange_unit + 0.3
    for share in (0.0, 0.5, 1.0):
        for marks in (plain_marks, aloof_marks):
            assert marks.scaled(_between(marks, share)) == pytest.approx((share, share))


def _between(marks: CosineMarks, share: float) -> Candidate:
    passage = marks.strange_passage + share * (marks.own_passage - marks.strange_passage)
    unit = marks.strange_unit + share * (marks.own_unit - marks.strange_unit)
    return Candidate("a", "a", passage, unit, {})


async def test_a_short_book_gives_no_marks() -> None:
    passages = book(3)
    assert await measure(passages, await stored(passages, FakeEmbedder()), FakeEmbedder()) is None


def test_questions_do_not_depend_on_the_order_of_the_book() -> None:
    passages = book()
    asked = own_questions(sample_of(passages))
    assert asked == own_questions(sample_of(passages[::-1]))
    assert all(question.text in question.home.text for question in asked)
