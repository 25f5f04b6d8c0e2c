"""Texts in, vectors that can be relied on out: what an embedder returns is looked at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed
from bythebook.ports import Embedder, TextRole

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
