"""The mode of the envelope contract."""

from bythebook.answering.routing import Mode, mode_of
from bythebook.types import Question


def test_mode_depends_on_the_selection() -> None:
    assert mode_of(Question("q")) is Mode.STANDARD_RAG
    assert mode_of(Question("q", selection="some text")) is Mode.SELECTED_TEXT_ONLY
    guiding = Question("q", selection="some text", selection_only=False)
    assert mode_of(guiding) is Mode.STANDARD_RAG
