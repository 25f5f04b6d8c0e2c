"""Choose the envelope contract's mode: search the book, or use the selection alone."""

from __future__ import annotations

from enum import StrEnum

from bythebook.types import Question


class WorkflowMode(StrEnum):
    STANDARD_RAG = "standard_rag"
    SELECTED_TEXT_ONLY = "selected_text_only"


def mode_of(question: Question) -> WorkflowMode:
    selected = question.selection_only and question.selection is not None
    return WorkflowMode.SELECTED_TEXT_ONLY if selected else WorkflowMode.STANDARD_RAG
