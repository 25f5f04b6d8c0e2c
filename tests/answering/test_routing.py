"""The mode of the envelope contract."""

from bythebook.answering.routing import WorkflowMode, mode_of
from bythebook.types import Question


def test_mode_depends_on_the_selection() -> None:
    assert mode_of(Question("q")) is WorkflowMode.STANDARD_RAG
    assert mode_of(Question("q", selection="some text")) is WorkflowMode.SELECTED_TEXT_ONLY
    guiding = Question("q", selection="some text", selection_only=False)
    assert mode_of(guiding) is WorkflowMode.STANDARD_RAG
