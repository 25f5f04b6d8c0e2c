"""Interface of embedding models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from bythebook.types import Vectors


TextRole = Literal["query", "passage"]


class Embedder(Protocol):
    """Embedding model with unit-length vectors. Longer text is windowed, never truncated."""

    @property
    def name(self) -> str: ...  # "provider:model", stored with the index

    @property
    def dimension(self) -> int: ...

    @property
    def limit(self) -> int: ...  # window size in tokens

    async def prepare(self) -> None:
        """Preload what the first call to ``embed`` would wait for; may do nothing."""
        ...

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors: ...
