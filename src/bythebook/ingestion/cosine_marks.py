"""Measure the scale of an embedder's cosines on a book.

Half a sentence is used as a question whose source passage is known; its mean cosines with that
passage and with passages of other pages are two marks, between which the scale is assumed to be
linear. With them, one set of weights holds for every embedder.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bythebook.retrieval.embeddings import embed
from bythebook.retrieval.score import CosineMarks
from bythebook.text.passage_records import vector_key
from bythebook.types import Passage, UnitKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bythebook.interfaces.models import Embedder
    from bythebook.interfaces.store import StoredVectors
    from bythebook.types import Vectors

MOST_PASSAGES = 2000  # sample size for a long book
MOST_QUESTIONS = 100
FEWEST_QUESTIONS = 10  # with fewer, the scale cannot be estimated
_STRANGERS = 20  # random passages each question is compared with, less those of its own page
_SHORTEST_SENTENCE = 40  # characters


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    text: str
    home: Passage
    unit: int


def sample_of(passages: Sequence[Passage]) -> list[Passage]:
    """Return a sample of the passages; deterministic and independent of their order."""
    ordered = sorted(passages, key=lambda passage: passage.id)
    chance = random.Random(len(ordered))  # noqa: S311 - a sample, not a secret
    return chance.sample(ordered, min(MOST_PASSAGES, len(ordered)))


def own_questions(passages: Sequence[Passage]) -> list[OwnQuestion]:
    """Return halves of random sentences as questions; deterministic for the same passages."""
    candidates = [
        (passage, number)
        for passage in passages
        for number, unit in enumerate(passage.units)
        if unit.kind is UnitKind.SENTENCE and unit.end - unit.start >= _SHORTEST_SENTENCE
    ]
    chance = random.Random(len(candidates))  # noqa: S311 - a sample, not a secret
    chosen = chance.sample(candidates, min(MOST_QUESTIONS, len(candidates)))
    return [OwnQuestion(_half(passage, number), passage, number) for passage, number in chosen]


def _half(passage: Passage, number: int) -> str:
    text = passage.unit_text(passage.units[number])
    middle = text.find(" ", len(text) // 2)
    return text[: middle if middle > 0 else len(text) // 2]


async def measure(
    passages: Sequence[Passage], vectors: Mapping[str, StoredVectors], embedder: Embedder
) -> CosineMarks | None:
    """Measure the marks; None if the book is too short. Needs the vectors of all ``passages``."""
    questions = own_questions(passages)
    if len(questions) < FEWEST_QUESTIONS:
        return None
    asked = await embed([question.text for question in questions], embedder, role="query")
    chance = random.Random(len(passages))  # noqa: S311 - as above
    strange, own = [], []
    for question, vector in zip(questions, asked, strict=True):
        for other in chance.sample(passages, min(_STRANGERS, len(passages))):
            if other.place.file != question.home.place.file:
                stored = vectors[vector_key(other)]
                strange.append(_cosines(stored, stored.unit_vectors, vector))
        home = vectors[vector_key(question.home)]
        own.append(_cosines(home, home.unit_vectors[question.unit, None], vector))
    if not strange:
        return None
    (strange_passage, strange_unit), (own_passage, own_unit) = (
        np.mean(cosines, axis=0).tolist() for cosines in (strange, own)
    )
    marks = CosineMarks(strange_passage, own_passage, strange_unit, own_unit)
    return marks if marks.is_scale else None


def _cosines(stored: StoredVectors, units: Vectors, vector: Vectors) -> tuple[float, float]:
    """Return the cosines with the passage and with the nearest of these units."""
    whole = float(stored.vector @ vector)
    return whole, float((units @ vector).max(initial=whole if not len(units) else -1.0))
