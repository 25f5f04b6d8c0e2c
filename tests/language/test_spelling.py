"""Misspelt words of a question become words of the book, and nothing else changes."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language import english
from bythebook.language.english.spelling import Spelling, correct_spelling
from bythebook.language.terms import term_ids
from bythebook.providers import embeddings

_BOOK = (
    "schizophrenia calibration transform planting behaviour randomise sensors particle control "
    "robot robust trust"
)
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
        ("contrl", "control"),
        ("sensars", "sensors"),
        ("partical", "particle"),  # it sounds alike
        ("robt", "robot"),  # short
    ],
)
def test_corrects_a_slip(written: str, meant: str) -> None:
    assert correct_spelling(written, _FREQUENCIES).text == meant


@pytest.mark.parametrize(
    "text",
    [
        "planning",  # another word than "planting"
        "calibrations",  # a form of a word that the book has
        "How do I use Rust? And rust?",  # an English word
        "Robt",  # a short name
        "rbt robit2 robt_id test.robt",
        "pointy",  # another form of a word that is not meant
        "calibraTon my_calibraton calibraton2 calibraton.py calibraton-x",  # names
        "salibration",  # the first letter is rarely wrong
        "kalibraton",  # two slips
        "کیلیبریشن",
        "",
    ],
)
def test_leaves_other_words_alone(text: str) -> None:
    assert correct_spelling(text, _FREQUENCIES) == Spelling(text, {}, is_sure=True)


def test_two_words_that_may_be_meant_are_proposed() -> None:
    similar = {**dict.fromkeys(term_ids("blankets"), 5), **dict.fromkeys(term_ids("blanks"), 3)}
    assert correct_spelling("blankts", similar) == Spelling(
        "blankts", {"blankts": ("blankets", "blanks")}, is_sure=False
    )
    clear = {**similar, **dict.fromkeys(term_ids("blankets"), 9)}
    assert correct_spelling("blankts", clear).text == "blankets"
    assert not correct_spelling("blankts", clear).is_sure


def test_short_words_are_not_sure() -> None:
    short = correct_spelling("robt", _FREQUENCIES)
    assert short == Spelling("robot", {"robt": ("robot",)}, is_sure=False)
    assert correct_spelling("calibraton", _FREQUENCIES).is_sure


def test_knows_words_that_questions_have_and_books_need_not() -> None:
    asked = correct_spelling("differnece", {}, also=frozenset(term_ids("difference")))
    assert asked.text == "difference"


def test_does_not_trust_a_word_that_one_passage_has() -> None:
    once = dict.fromkeys(term_ids("calibration"), 1)
    assert correct_spelling("calibraton", once).text == "calibraton"


def test_common_words_are_those_of_the_embedding_model() -> None:
    model = json.loads(resources.files(embeddings).joinpath("minilm-tokenizer.json").read_text())
    common = {word for word in model["model"]["vocab"] if re.fullmatch("[a-z]{4,24}", word)}
    listed = resources.files(english).joinpath("common_words.txt").read_text()
    assert listed.split() == sorted(common)


@given(st.text(alphabet="abcdeilnoprst CF_.'-", max_size=60))
def test_never_changes_a_known_word(text: str) -> None:
    known = dict.fromkeys(term_ids(text), 3)
    assert correct_spelling(text, known).text == text


def test_examines_few_words() -> None:
    text = " ".join(f"calibra{'x' * n}ton" for n in range(1, 40)) + " calibraton"
    assert correct_spelling(text, _FREQUENCIES) == Spelling(text, {}, is_sure=True)
