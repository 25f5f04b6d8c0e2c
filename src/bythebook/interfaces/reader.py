"""Interface of reading models: does a passage answer a question, and does it support a sentence?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bythebook.types import Passage, PassageReading


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """Support for one sentence by the evidence."""

    probability: float  # that the evidence supports the sentence, 0 to 1
    passage: int | None  # index of the passage that supports it best, if any


class Reader(Protocol):
    """Model that reads passages. Results are deterministic and in the order of the input."""

    @property
    def name(self) -> str: ...  # "provider:model"

    async def prepare(self) -> None:
        """Preload what the first call would wait for; may do nothing."""
        ...

    async def read(self, question: str, passages: Sequence[Passage]) -> list[PassageReading]:
        """Return one reading for each passage, independent of the other passages."""
        ...

    async def support(
        self, sentences: Sequence[str], evidence: Sequence[Passage]
    ) -> list[SentenceSupport]:
        """Return the support for each sentence, independent of the other sentences."""
        ...
