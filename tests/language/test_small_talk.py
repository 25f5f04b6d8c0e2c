"""Small talk is not a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.english.small_talk import is_small_talk


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello there!",
        "thanks! who are you?",
        "ok thank you, bye!",
        "Thank you very much.",
        "good morning",
        "What can I ask you?",
        "how are you?",
        "thanks, that was really helpful!",
        "who are you and what can you do?",
        "lol ok",
    ],
)
def test_greetings_and_thanks_are_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "What is a node?",
        "hi, what is a node?",
        "Hello World example",
        "thanks, and how do I build it?",
        "book",
        "good practice",
        "Why?",
        "is recall useful?",
        "who are you and what is a node?",
    ],
)
def test_questions_are_not_small_talk(text: str) -> None:
    assert not is_small_talk(text)


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert is_small_talk(text) in (True, False)
