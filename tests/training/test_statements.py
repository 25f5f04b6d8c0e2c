"""Statements made by rule for training, and the metric that the model is chosen by."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.metrics import auroc
from training.prepare import sentences
from training.statements import answer_type, lies, statement, truths

_PARAGRAPH = "John Lang opened the bridge in 1932. It is not the largest in Sydney Harbour."


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (
            "Who invaded the empire in 334 BC?",
            "Alexander",
            "Alexander invaded the empire in 334 BC.",
        ),
        (
            "When was the moon Larissa discovered?",
            "1981",
            "The moon Larissa was discovered in 1981.",
        ),
        ("What is the capital of France?", "Paris", "The capital of France is Paris."),
        ("How many people marched in Jerusalem?", "75,000", "75,000 people marched in Jerusalem."),
        ("In what borough is the park located?", "Queens", "The park is located in Queens."),
        ("Why did it happen to them all?", "bad luck", None),
        ("What?", "that", None),
    ],
)
def test_a_question_with_its_answer_becomes_a_statement(
    question: str, answer: str, expected: str | None
) -> None:
    assert statement(question, answer) == expected


@given(st.text(max_size=80), st.text(max_size=30))
def test_any_text_gives_a_statement_or_none(question: str, answer: str) -> None:
    made = statement(question, answer)
    assert made is None or made.endswith(".")


def test_a_lie_differs_from_its_sentence_in_one_thing() -> None:
    sentence = "John Lang opened the bridge in 1932."
    made = lies(sentence, _PARAGRAPH, random.Random(1))
    assert made
    assert sentence not in made
    assert any("1932" not in lie for lie in made)
    assert lies("It is not the largest.", _PARAGRAPH, random.Random(1))[0] == "It is the largest."
    assert lies("It was large.", _PARAGRAPH, random.Random(1)) == ["It was not large."]


def test_a_truth_says_no_more_than_its_sentence() -> None:
    assert truths("In 1932, the harbour bridge was opened by Lang.") == [
        "The harbour bridge was opened by Lang in 1932.",
        "The harbour bridge was opened by Lang.",
    ]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("in 1932", "year"), ("12 apples", "number"), ("Lang", "name"), ("green", "word")],
)
def test_answers_have_types(answer: str, kind: str) -> None:
    assert answer_type(answer) == kind


def test_sentences_are_spans_of_the_text() -> None:
    assert [_PARAGRAPH[slice(*span)] for span in sentences(_PARAGRAPH)] == [
        "John Lang opened the bridge in 1932.",
        "It is not the largest in Sydney Harbour.",
    ]


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([1, 2, 3, 4], [False, False, True, True], 1.0),
        ([1, 2, 3, 4], [True, True, False, False], 0.0),
        ([1, 1, 1, 1], [True, False, True, False], 0.5),
        ([1, 2, 2, 3], [False, True, False, True], 0.875),
    ],
)
def test_auroc(scores: list[float], labels: list[bool], expected: float) -> None:
    assert auroc(scores, labels) == expected
