"""Classification of English questions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.english.question_types import question_type


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is a URDF file?", "A URDF file is an XML file."),
        ("What is a URDF file?", "URDF is an XML format."),
        ("What is URDF?", "URDF is the Unified Robot Description Format."),
        ("what are nodes", "Nodes are programs."),
        ("What is a node?", "**Nodes** are programs that talk."),
        ("What does SDF mean?", "SDF (Simulation Description Format) describes whole worlds."),
        ("Define loop closure.", "Loop closure: the robot recognises a place."),
        ("Who was Ada Lovelace?", "Ada Lovelace, a mathematician, was the first programmer."),
    ],
)
def test_definition_starts_with_the_defined_term(question: str, text: str) -> None:
    assert question_type(question).is_defined_by(text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is a URDF file?", "Sensor settings in a URDF file stand inside a tag."),
        ("What is a node?", "A node may be restarted."),
        ("What is the drawback of predicting many actions at once?", "The drawback is speed."),
        ("Why is a node fast?", "A node is a program."),
        ("What is (?", "( is a bracket."[1:]),
    ],
)
def test_other_sentences_and_questions_define_nothing(question: str, text: str) -> None:
    assert not question_type(question).is_defined_by(text)


def test_number_questions_are_recognised() -> None:
    assert question_type("How many weeks does it take?").is_counted_by("It takes twelve weeks.")
    assert question_type("Until when is it supported?").is_counted_by(
        "It is supported until May 2029."
    )
    assert not question_type("How many weeks does it take?").is_counted_by("It takes weeks.")
    assert not question_type("Why does it take so long?").is_counted_by("It takes twelve weeks.")


def test_steps_and_code() -> None:
    assert question_type("How do I calibrate a camera?").steps
    assert question_type("Show me a publisher").code
    assert not question_type("Why calibrate?").steps


@given(st.text(max_size=100), st.text(max_size=100))
def test_untyped_question_matches_no_answer_type(question: str, text: str) -> None:
    wants = question_type(question)
    assert wants.definition or not wants.is_defined_by(text)
    assert wants.number or not wants.is_counted_by(text)
    assert wants.number or not wants.count


@given(st.from_regex(r"[A-Z][a-z]{2,8}( [b-l][a-z]{2,7}){0,2}", fullmatch=True))
def test_any_short_term_can_be_defined(term: str) -> None:
    assert question_type(f"What is {term}?").is_defined_by(f"{term} is something that one can say.")
