"""Sentences that only repeat the question."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.retrieval.echo_filter import adds_information
from tests.support.samples import SAMPLE_BOOK, passage, read


def _is_informative(question: str, sentence: str, **metadata: object) -> bool:
    return any(adds_information(question, passage(sentence, **metadata)))


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("What lifts a kite?", "What lifts a kite?"),
        ("What lifts a kite?", "A kite lifts."),
        ("What lifts a kite?", "The book does not say what lifts a kite."),
        ("What lifts a kite?", "Nothing is known about the lift of kites."),
        ("What lifts a kite?", "This section explains what lifts a kite."),
        ("Is water wet?", "Is water wet?"),
        ("Is water wet?", "The book does not say."),
        ("Is water wet?", "Is water wet."),
        ("Is water wet?", "There is no information about “is water wet”."),
        ("How many degrees has boiling water?", "(Who knows how many degrees it has?)"),
    ],
)
def test_echo_is_not_informative(question: str, sentence: str) -> None:
    assert not _is_informative(question, sentence)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("What lifts a kite?", "The wind lifts a kite."),
        ("How many degrees has boiling water?", "Boiling water has 100 degrees."),
        ("When is the lid shut?", "The lid is shut before."),  # a small word may be all there is
        ("Is water wet?", "Water is wet."),
        ("Is water wet?", "No."),
        ("Is water wet?", "“Is water wet” was asked by children first."),
        ("Does the book say what water is?", "The book does not say."),
        ("Which is heavier, nylon or paper?", "Paper is heavier."),  # a choice
        ("kettle water", "Kettle water."),  # no question at all
        ("Was ist ein Drachen?", "Ein Drachen ist ein Drachen."),  # of a language we do not know
    ],
)
def test_possible_answer_is_informative(question: str, sentence: str) -> None:
    assert _is_informative(question, sentence)


def test_sentence_with_a_pronoun_inherits_the_flag() -> None:
    found = passage("A strip bends when hot. It switches the kettle off. It does. Does it?")
    assert adds_information("What switches the kettle off?", found) == (True, True, True, False)
    planted = passage("What switches the kettle off? It switches the kettle off. It is not known.")
    assert adds_information("What switches the kettle off?", planted) == (False, False, False)


def test_no_answer_in_the_sample_book_is_an_echo() -> None:
    lines = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("answers") and row.get("file")]
    passages = read(SAMPLE_BOOK / "docs").passages
    answering = 0
    for row in rows:
        for found in (each for each in passages if row["file"].endswith(each.place.file)):
            flags = adds_information(row["question"], found)
            for unit, is_informative in zip(found.units, flags, strict=True):
                if any(answer in found.unit_text(unit) for answer in row["answers"]):
                    answering += 1
                    assert is_informative, (row["question"], found.unit_text(unit))
    assert answering >= len(rows) / 2


@given(st.text(max_size=100), st.text(max_size=200))
def test_returns_a_flag_for_each_unit_of_any_text(question: str, text: str) -> None:
    found = passage(text)
    assert len(adds_information(question, found)) == len(found.units)
