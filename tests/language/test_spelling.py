"""Misspelt words of a question become words of the book, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.english.spelling import correct_spelling
from bythebook.language.terms import term_ids

_BOOK = "schizophrenia calibration transform planting behaviour randomise sensors particle control"
_FREQUENCIES = dict.fromkeys(term_ids(_BOOK), 3)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("What are the symptoms of schizofrenia?", "What are the symptoms of schizophrenia?"),
        ("calibraton", "calibration"),  # a letter is missing
        ("callibration", "calibration"),  # one too many
        ("transfrom", "transform"),  # two are swapped
        ("calebration", "calibration"),  # one is confused
        ("behavior", "behaviour"),  # American
        ("randomize", "randomise"),
        ("Calibraton?", "calibration?"),
    ],
)
def test_corrects_a_slip(written: str, meant: str) -> None:
    assert correct_spelling(written, _FREQUENCIES) == meant


@pytest.mark.parametrize(
    "text",
    [
        "planning",  # another word than "planting"
        "calibrations",  # a form of a word that the book has
        "contrl",  # too short to be sure
        "calibraTon my_calibraton calibraton2 calibraton.py calibraton-x",  # names
        "salibration",  # the first letter is rarely wrong
        "kalibraton",  # two slips
        "کیلیبریشن",
        "",
    ],
)
def test_leaves_other_words_alone(text: str) -> None:
    assert correct_spelling(text, _FREQUENCIES) == text


def test_leaves_a_word_with_two_corrections_alone() -> None:
    one, two = (dict.fromkeys(term_ids(book), 3) for book in ("blankets", "blankets blanks"))
    assert correct_spelling("blankts", one) == "blankets"
    assert correct_spelling("blankts", two) == "blankts"


def test_knows_words_that_questions_have_and_books_need_not() -> None:
    asked = correct_spelling("differnece", {}, also=frozenset(term_ids("difference")))
    assert asked == "difference"


def test_does_not_trust_a_word_that_one_passage_has() -> None:
    assert correct_spelling("calibraton", dict.fromkeys(term_ids("calibration"), 1)) == "calibraton"


@given(st.text(alphabet="abcdeilnoprst CF_.'-", max_size=60))
def test_never_changes_a_known_word(text: str) -> None:
    known = dict.fromkeys(term_ids(text), 3)
    assert correct_spelling(text, known) == text


def test_examines_few_words() -> None:
    text = " ".join(f"calibra{'x' * n}ton" for n in range(1, 40)) + " calibraton"
    assert correct_spelling(text, _FREQUENCIES) == text
