"""Vectors of questions are cached, within limits of number and age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bythebook.errors import EmbedderFailed
from bythebook.interfaces.models import TextRole
from bythebook.providers.testing import FakeEmbedder
from bythebook.retrieval.embeddings import QuestionVectors

if TYPE_CHECKING:
    from bythebook.types import Vectors


async def test_a_question_is_embedded_once_for_each_embedder() -> None:
    one, other, asked = FakeEmbedder(), FakeEmbedder(name="fake:other"), QuestionVectors()
    first = await asked.of("kettle", one)
    assert (await asked.of("kettle", one)) is first
    await asked.of("kettle", other)
    assert (one.calls, other.calls) == ([["kettle"]], [["kettle"]])
    assert (asked.hits, asked.misses) == (1, 2)


async def test_the_least_recently_used_question_is_evicted_first() -> None:
    embedder, asked = FakeEmbedder(), QuestionVectors(most=2)
    for question in ("kettle", "kite", "kettle", "string", "kettle", "kite"):
        await asked.of(question, embedder)
    assert [text for [text] in embedder.calls] == ["kettle", "kite", "string", "kite"]


async def test_a_cached_vector_expires_after_an_hour() -> None:
    now = 0.0
    embedder, asked = FakeEmbedder(), QuestionVectors(clock=lambda: now)
    for now in (0, 3599, 3600, 7199):  # noqa: B007 - the clock reads it
        await asked.of("kettle", embedder)
    assert len(embedder.calls) == 2
    assert (asked.hits, asked.misses) == (2, 2)


async def test_an_invalid_vector_is_not_cached() -> None:
    class Broken(FakeEmbedder):
        broken = True

        async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
            made = await super().embed(texts, role=role)
            return np.full_like(made, np.nan) if self.broken else made

    embedder, asked = Broken(), QuestionVectors()
    with pytest.raises(EmbedderFailed):
        await asked.of("kettle", embedder)
    embedder.broken = False
    assert np.isfinite(await asked.of("kettle", embedder)).all()
