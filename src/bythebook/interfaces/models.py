"""Interfaces of models: embedders, reading models, and writers of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from bythebook.types import (
    Evidence,
    Hit,
    Message,
    Passage,
    PassageReading,
    Question,
    Role,
    Usage,
)

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


@dataclass(frozen=True, slots=True)
class WriterSearchResult:
    """Passages from a writer's own search, appended to the evidence with further numbers."""

    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of a language model: system message, then the turns in order."""

    system: str
    turns: tuple[tuple[Role, str], ...]


@dataclass(frozen=True, slots=True)
class SupportPrompt:
    """Prompt that asks whether passages support sentences; both are numbered from 1."""

    prompt: Prompt
    sentences: int  # how many of the given ones it asks about, from the first on
    passages: int  # how many of the given ones it quotes, from the first on


Compose = Callable[[Question, Evidence, Sequence[Message]], Prompt]


ComposeSupport = Callable[[Sequence[str], Sequence[Passage]], SupportPrompt]


DraftEvent = WriterSearchResult | Usage


DraftPiece = str | DraftEvent  # text chunk, search result or usage


class Writer(Protocol):
    """Writer of answers from evidence. Each sentence is checked before the user sees it.

    A draft that ends is complete: an interrupted writer raises WriterFailed.
    """

    @property
    def name(self) -> str: ...

    def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[DraftPiece]: ...
