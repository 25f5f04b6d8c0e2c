"""Interface of answer writers: extractive or a language model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bythebook.types import Evidence, Hit, Message, Question, Role, Usage


@dataclass(frozen=True, slots=True)
class WriterSearchResult:
    """Passages from a writer's own search, appended to the evidence with further numbers."""

    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of a language model: system message, then the turns in order."""

    system: str
    turns: tuple[tuple[Role, str], ...]


Compose = Callable[[Question, Evidence, Sequence[Message]], Prompt]


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
