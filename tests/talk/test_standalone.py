"""Follow-ups that stand alone."""

from datetime import UTC, datetime

from bythebook.model import Message, Question, Role
from bythebook.talk.standalone import stand_alone

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_HISTORY = [
    Message(Role.USER, "What is a topic?", _NOW),
    Message(Role.ASSISTANT, "A topic is a named channel. [1]", _NOW, 0.9),
]


def test_a_follow_up_borrows_what_it_leans_on() -> None:
    assert stand_alone(Question("And how do I create one?"), _HISTORY).text.endswith(" topic")


def test_a_question_that_stands_alone_is_left_alone() -> None:
    question = Question("How does a camera measure depth?")
    assert stand_alone(question, _HISTORY) == question


def test_the_first_question_has_nothing_to_borrow() -> None:
    question = Question("And what about it?")
    assert stand_alone(question, ()) == question
