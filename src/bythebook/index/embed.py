"""Texts in, vectors that can be relied on out: what an embedder returns is looked at first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed
from bythebook.ports import Embedder, TextRole
from bythebook.recent import Recent

if TYPE_CHECKING:
    from bythebook.model import Vectors


async def embed(texts: Sequence[str], embedder: Embedder, *, role: TextRole) -> Vectors:
    """One usable vector for each text, or EmbedderFailed before anybody keeps them."""
    vectors = await embedder.embed(texts, role=role)
    if vectors.shape != (len(texts), embedder.dimension):
        wrong = f"vectors of the shape {vectors.shape}"
    elif not np.isfinite(vectors).all():
        wrong = "vectors that are not finite"
    elif not np.linalg.norm(vectors, axis=1).all():
        wrong = "vectors of no length"
    else:
        return vectors
    raise EmbedderFailed(
        f"{embedder.name} returned {wrong} for {len(texts)} texts.",
        cure="Nothing of them is kept. Check the embedder, or choose another.",
    )


_FRESH_S = 60 * 60


class QuestionVectors:
    """The vectors of the latest questions: one that is asked again is not embedded again."""

    def __init__(self, most: int = 1024, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: Recent[tuple[str, str], Vectors] = Recent(most, fresh_s=_FRESH_S, clock=clock)
        self.hits = 0
        self.misses = 0

    async def of(self, question: str, embedder: Embedder) -> Vectors:
        key = (embedder.name, question)
        known = self._known.get(key)
        if known is None:
            self.misses += 1
            [known] = await embed([question], embedder, role="query")
            self._known.put(key, known)
        else:
            self.hits += 1
        return known
