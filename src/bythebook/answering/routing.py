"""Plan the envelope contract's workflow: search the book, or use the selection alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bythebook.types import Question


class Mode(StrEnum):
    STANDARD_RAG = "standard_rag"
    SELECTED_TEXT_ONLY = "selected_text_only"


@dataclass(frozen=True, slots=True)
class PlannedWorkflow:
    mode: Mode
    query: str
    top_k: int
    selected_text: str | None

    def __post_init__(self) -> None:
        if (self.mode is Mode.SELECTED_TEXT_ONLY) != (self.selected_text is not None):
            raise ValueError("selected_text belongs to selected_text_only, and only to it")


def plan(question: Question) -> PlannedWorkflow:
    selected = question.selection if question.selection_only else None
    mode = Mode.STANDARD_RAG if selected is None else Mode.SELECTED_TEXT_ONLY
    return PlannedWorkflow(mode, question.text, question.top_k, selected)
