"""Questions that consist of several questions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.conversations.query_rewriting import parts_of
from bythebook.language.english.question_parts import split_parts
from bythebook.types import Question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("What is SLAM, and when does it fail?", ("What is SLAM", "when does it fail?")),
        ("What is a kite? How do I build one?", ("What is a kite?", "How do I build one?")),
        ("What is a node and why is it useful", ("What is a node", "why is it useful")),
        ("What is the difference between a topic and a service?", ()),
        ("How do lidar and radar differ?", ()),
        ("My robot drifts. Why does it do that?", ()),
        ("", ()),
    ],
)
def test_parts_are_questions_of_their_own(question: str, parts: tuple[str, ...]) -> None:
    assert tuple(part.text for part in parts_of(Question(question))) == parts


def test_part_that_depends_on_the_first_has_it_as_context() -> None:
    first, second = parts_of(Question("What is SLAM, and when does it fail?"))
    assert (first.context, second.context) == ("", "What is SLAM?")
    assert [part.context for part in parts_of(Question("What is a kite? What is a boat?"))] == [
        ""
    ] * 2


def test_ten_questions_in_one_have_at_most_four_parts() -> None:
    assert len(split_parts(" ".join(f"What is a kite{n}?" for n in range(10)))) == 4


@given(st.text())
def test_any_text_is_split_without_an_error(text: str) -> None:
    assert len(split_parts(text)) != 1
