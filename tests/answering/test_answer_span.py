"""The few words that are the answer: of the kind that was asked, among the question's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.answer_span import find_answer_span
from bythebook.language.terms import term_ids

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
    asked = dict.fromkeys(term_ids(question), 1.0)
    found = find_answer_span(question, asked, sentences)
    return found and sentences[found.sentence][found.start : found.end]


@pytest.mark.parametrize(("question", "sentence", "expected"), CASES)
def test_what_was_asked_for_is_marked(question: str, sentence: str, expected: str) -> None:
    assert span(question, sentence) == expected


def test_the_sentence_that_has_the_questions_words_is_the_one() -> None:
    sentences = ("Ann Lee opened a shop in 1901.", "Bo Kim opened the bridge in 1907.")
    assert span("Who opened the bridge?", *sentences) == "Bo Kim"


@pytest.mark.parametrize(
    "question",
    ["Why does a kite fly?", "How does it work?", "Is it safe?", "What is a kite?", "Where is it?"],
)
def test_a_question_for_more_than_a_few_words_has_no_mark(question: str) -> None:
    assert span(question, "A kite flies because in 1901 Ann Lee let it go in Paris.") is None


def test_what_the_question_says_itself_is_no_answer() -> None:
    assert span("Who met Ann Lee?", "Ann Lee was met by nobody.") is None


def test_code_is_not_marked() -> None:
    assert span("How many nodes?", "```\nnodes = 3\n```") is None


@given(st.text(max_size=80), st.lists(st.text(max_size=120), max_size=3))
def test_a_mark_lies_within_a_sentence(question: str, sentences: list[str]) -> None:
    found = find_answer_span(question, dict.fromkeys(term_ids(question), 1.0), sentences)
    if found is not None:
        assert 0 <= found.start < found.end <= len(sentences[found.sentence])
