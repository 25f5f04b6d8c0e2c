"""The answer span: of the kind that was asked for, near the question's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.answer_span import find_answer_span
from bythebook.language.terms import Vocabulary
from bythebook.retrieval.question_analysis import analyze
from bythebook.types import AnswerSpan, Question

CASES = [
    ("When was the bridge opened?", "The bridge was opened on 4 May 1932 by Lang.", "4 May 1932"),
    ("In what year did the war end?", "Begun early, the war ended in 1918.", "1918"),
    ("How many kites were sold?", "Of 90 shops, 12 sold 3,400 kites.", "3,400"),
    ("How much did the tower cost?", "The tower cost $24.5 million.", "$24.5 million"),
    ("What percentage of sailors drowned?", "Some 12% of sailors drowned.", "12%"),
    ("Who designed the bridge?", "The bridge was designed by John Bradfield.", "John Bradfield"),
    ("Which command lists the nodes?", "The command ros2_list lists the nodes.", "ros2_list"),
    ("How far is the yard from here?", "From here, the yard is 3 miles.", "3 miles"),
]


def span(question: str, *sentences: str) -> str | None:
    found = _find(question, *sentences)
    return found and sentences[found.sentence][found.start : found.end]


def _find(question: str, *sentences: str) -> AnswerSpan | None:
    return find_answer_span(analyze(Question(question), Vocabulary(passages=1)), sentences)


@pytest.mark.parametrize(("question", "sentence", "expected"), CASES)
def test_marks_the_kind_of_span_asked_for(question: str, sentence: str, expected: str) -> None:
    assert span(question, sentence) == expected


def test_prefers_the_sentence_with_the_words_of_the_question() -> None:
    sentences = ("Ann Lee opened a shop in 1901.", "Bo Kim opened the bridge in 1907.")
    assert span("Who opened the bridge?", *sentences) == "Bo Kim"


@pytest.mark.parametrize(
    "question",
    ["Why does a kite fly?", "How does it work?", "Is it safe?", "What is a kite?", "Where is it?"],
)
def test_marks_nothing_for_open_questions(question: str) -> None:
    assert span(question, "A kite flies because in 1901 Ann Lee let it go in Paris.") is None


def test_does_not_mark_a_name_from_the_question() -> None:
    assert span("Who met Ann Lee?", "Ann Lee was met by nobody.") is None


def test_does_not_mark_code() -> None:
    assert span("How many nodes?", "```\nnodes = 3\n```") is None


@given(st.text(max_size=80), st.lists(st.text(max_size=120), max_size=3))
def test_span_is_within_its_sentence(question: str, sentences: list[str]) -> None:
    found = _find(question, *sentences)
    if found is not None:
        assert 0 <= found.start < found.end <= len(sentences[found.sentence])
