"""SQuAD text comparison in every script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.evaluation.grade import holds, overlap, words_of


def test_case_punctuation_and_articles_do_not_count() -> None:
    assert words_of("The wind, a friend of “the” Kite!") == ["wind", "friend", "of", "kite"]


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("It lasts until May 2029, then ends.", "May 2029", True),
        ("It runs at the several kilohertz.", "several kilohertz", True),
        ("A part of the whole.", "art", False),  # whole words only
        ("Twelve weeks", "twelve  WEEKS.", True),
        ("风筝在春天飞得最高。", "春天", True),
        ("written in C++ today", "++", True),  # nothing but punctuation: as it stands
        ("written in Rust", "++", False),
        ("anything", "", False),
    ],
)
def test_an_answer_is_found_verbatim(text: str, answer: str, expected: bool) -> None:
    assert holds(text, ["never there at all", answer]) is expected


def test_overlap_is_the_best_f1_over_the_answers() -> None:
    # {twelve, weeks} against {twelve, long, weeks}: precision 1, recall 2/3
    assert overlap("twelve weeks", ["twelve long weeks"]) == pytest.approx(0.8)
    assert overlap("twelve weeks", ["a year", "twelve weeks"]) == 1
    assert overlap("twelve weeks", ["a year"]) == 0
    assert overlap("twelve weeks", []) == 0


@given(st.text(), st.text())
def test_overlap_is_symmetric_and_a_share(one: str, other: str) -> None:
    assert overlap(one, [other]) == pytest.approx(overlap(other, [one]))
    assert 0 <= overlap(one, [other]) <= 1
    assert overlap(one, [one]) == 1


@given(st.text(), st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), st.text())
def test_whole_words_are_found(before: str, answer: str, after: str) -> None:
    assert holds(f"{before} {answer} {after}", [answer])
