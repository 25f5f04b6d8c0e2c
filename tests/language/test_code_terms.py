"""Operators, flags and keywords are terms where a text is about them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.code_terms import code_terms, prose_code_terms
from bythebook.language.terms import Vocabulary, term_id, term_ids
from bythebook.types import Mark, MarkKind, Passage, Unit, UnitKind
from tests.support.samples import passage


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("difference between := and =", [":=", "="]),
        ("Is it == or =?", ["==", "="]),
        ("the exclamation mark in x!.foo", ["!.", "!"]),
        ("what does ... do", ["..."]),
        ("what does `&` mean", ["&"]),
        ("a ? operator", ["?"]),
        ("what does --onlyFailures do, and -v?", ["--onlyfailures", "-v"]),
        ("Where does #define belong?", ["#define"]),
        ("Yes! The end-to-end and/or part (e.g. this one)... costs 5 - 7; why?", []),
        ("Tom & Jerry, v1.2 at https://example.com/a?b", []),
        ("a line: ---------- ?", []),
    ],
)
def test_a_question_names_signs(question: str, expected: list[str]) -> None:
    assert prose_code_terms(question, "en", asks=True) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("n := <-queue", [":=", "<-queue", "<-"]),
        ("x!.foo?: string", ["!.", "!", "?:", "?"]),
        ("import a from './b/c'; // see d.e", ["./b", "//"]),
        ("list |> map(&f.(&1))", ["|>", "&f", "&", "&"]),
    ],
)
def test_code_consists_of_signs(code: str, expected: list[str]) -> None:
    assert code_terms(code, "en") == expected


@given(st.text(alphabet="ab .`'\"!?=:-/<>&|@#(){}\n", max_size=80))
def test_signs_of_any_text_have_no_blank(text: str) -> None:
    for term in chain(*(find(text, "en") for find in (code_terms, prose_code_terms))):
        assert term
        assert not set(term[1:]) & set(" \n`")


_PROSE = [passage(f"You read this for the {name}.") for name in ("kite", "wind", "lamp", "sail")]


def _with_code(text: str, code: str) -> Passage:
    start = text.index(code)
    mark = Mark(start, start + len(code), MarkKind.CODE)
    return replace(passage(text), marks=(mark,))


def _asked(question: str, *code: Passage) -> set[int]:
    return set(Vocabulary.of([*_PROSE, *code]).ask(question))


@pytest.mark.parametrize(
    ("question", "is_keyword"),
    [
        ("What does `for` say?", True),
        ("What does 'for' say?", True),
        ("How does the for loop end?", True),
        ("What does for mean?", True),  # there is nothing else
        ("Which wind is good for the kite?", False),
    ],
)
def test_a_stop_word_is_a_term_if_it_is_the_subject(question: str, is_keyword: bool) -> None:
    looping = _with_code("To repeat, write for here.", "for")
    assert (term_id("`for") in _asked(question, looping)) == is_keyword
    assert term_id("`for") in Vocabulary.of([looping]).weigh(looping)


def test_a_method_is_a_term_after_its_dot() -> None:
    assert {term_id(".each"), term_id("`each")} <= set(term_ids("What is .each for?"))


def test_signs_that_the_book_never_has_do_not_count() -> None:
    assert _asked("kite := wind") == _asked("kite wind")


def test_signs_leave_the_weights_of_words_alone() -> None:
    plain, text = passage("A kite flies. kite wind"), "A kite flies.\n\nkite := 'wind' =="
    coded = replace(passage(text), units=(Unit(15, len(text), UnitKind.CODE),))
    weights = Vocabulary.of([coded]).weigh(coded)
    assert Vocabulary.of([plain]).weigh(plain).items() < weights.items()
    assert term_id(":=") in weights


def test_the_headings_name_signs_too() -> None:
    flag = passage("It runs the tests that failed.", section="--onlyFailures")
    assert term_id("--onlyfailures") in Vocabulary.of([flag]).weigh(flag)
