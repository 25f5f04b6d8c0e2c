"""Interface of answer writers: extractive or a language model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bythebook.types import Evidence, Hit, Message, Passage, Question, Role, Usage


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
