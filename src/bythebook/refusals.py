"""Refusals: the values returned when the book does not answer, and their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RefusalType(StrEnum):
    """Refusal reasons of the contract envelope."""

    EMPTY_RETRIEVAL = "empty_retrieval"
    LOW_RELEVANCE = "low_relevance"
    INSUFFICIENT_GROUNDING = "insufficient_grounding"
    SELECTED_TEXT_MISSING = "selected_text_missing"


BOOK_DOES_NOT_SAY = (
    "The provided book content does not contain sufficient information to answer this question"
)
SELECTION_DOES_NOT_SAY = "The selected text does not contain this information"
SMALL_TALK = "Hello! Ask a question about this book, and the answer comes from its pages."
DISCLAIMER = "The book says little about this; read the cited passages yourself."  # low confidence


@dataclass(frozen=True, slots=True)
class Topic:
    """Related topic that the book covers."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Related:
    """What the book says about the subject of a question that it does not answer."""

    quote: str  # verbatim
    title: str  # of the section
    link: str


@dataclass(frozen=True, slots=True)
class Refusal:
    type: RefusalType
    nearby: tuple[Topic, ...] = ()
    related: Related | None = None
    is_small_talk: bool = False  # it was no question; the contracts refuse it like any other

    @property
    def text(self) -> str:
        if self.type is RefusalType.SELECTED_TEXT_MISSING:
            return SELECTION_DOES_NOT_SAY
        return BOOK_DOES_NOT_SAY

    @property
    def remark(self) -> str | None:
        """Return a sentence for readers: a friendly line, or what the book does say."""
        if self.is_small_talk:
            return SMALL_TALK
        if self.related is None:
            return None
        return f"It does say, in “{self.related.title}”: {self.related.quote}"
