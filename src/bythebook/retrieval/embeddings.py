"""Embed texts, validate what the embedder returns, and cache the vectors of questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from cachetools import TTLCache

from bythebook.errors import EmbedderFailed
from bythebook.interfaces.models import Embedder, TextRole

if TYPE_CHECKING:
    from bythebook.types import Vectors


async def embed(texts: Sequence[str], embedder: Embedder, *, role: TextRole) -> Vectors:
    """Return one valid vector for each text, or raise EmbedderFailed."""
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
        hint="Nothing of them is kept. Check the embedder, or choose another.",
    )


_FRESH_S = 60 * 60


class QuestionVectors:
    """LRU cache with a time-to-live for the vectors of questions."""

    def __init__(self, most: int = 1024, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: TTLCache[tuple[str, str], Vectors] = TTLCache(most, ttl=_FRESH_S, timer=clock)
        self.hits = 0
        self.misses = 0

    async def of(self, question: str, embedder: Embedder) -> Vectors:
        key = (embedder.name, question)
        known = self._known.get(key)
        if known is None:
            self.misses += 1
            [known] = await embed([question], embedder, role="query")
            self._known[key] = known
        else:
            self.hits += 1
        return known
