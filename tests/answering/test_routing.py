"""The planned workflow of the envelope contract."""

import pytest

from bythebook.answering.routing import Mode, PlannedWorkflow, plan
from bythebook.types import Question


def test_a_selection_decides_the_mode() -> None:
    assert plan(Question("q")).mode is Mode.STANDARD_RAG
    assert plan(Question("q", selection="some text")).mode is Mode.SELECTED_TEXT_ONLY
    leading = plan(Question("q", selection="some text", selection_only=False))
    assert (leading.mode, leading.selected_text) == (Mode.STANDARD_RAG, None)


def test_mode_and_selection_cannot_disagree() -> None:
    with pytest.raises(ValueError, match="selected_text"):
        PlannedWorkflow(Mode.STANDARD_RAG, "q", 5, "text")
    with pytest.raises(ValueError, match="selected_text"):
        PlannedWorkflow(Mode.SELECTED_TEXT_ONLY, "q", 5, None)
