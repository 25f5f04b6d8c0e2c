"""Signals against a passage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.terms import Vocabulary
from bythebook.retrieval.counter_evidence import add_counter_evidence
from bythebook.retrieval.question_analysis import analyze
from bythebook.types import Question, Signals
from tests.support.samples import passage

TEXT = "The Norman king William crossed the Channel in 1066. He did not return before winter."


def judge(question: str, text: str = TEXT) -> Signals:
    found = passage(text, section="Conquest")
    asked = analyze(Question(question), Vocabulary.of([found]))
    return add_counter_evidence(Signals(), asked, found, [0.5] * len(found.units))


def test_question_in_the_words_of_the_book_has_no_counter_evidence() -> None:
    assert judge("When did king William cross the Channel?") == Signals()


def test_missing_term_counts_by_its_rarity() -> None:
    assert judge("Which horses crossed the Channel?").missing_rare_term == 1
    assert judge("Who crossed the Channel?").missing_rare_term == 0


@pytest.mark.parametrize(
    "question",
    ["When did the king not cross the Channel?", "Which king didn’t cross the Channel?"],
)
def test_negated_question_mismatches_an_affirmed_fact(question: str) -> None:
    assert judge(question).negation_mismatch == 1


def test_negated_question_matches_a_negated_fact() -> None:
    assert judge("Why did he not return before winter?").negation_mismatch == 0


def test_counts_names_and_numbers_that_the_passage_lacks() -> None:
    assert judge("What did King Harold do in 1067?").unmatched_entities == 2
    assert judge("What did the Norman William do in 1066?").unmatched_entities == 0


def test_name_in_the_headings_is_matched() -> None:
    assert judge("What about the Conquest?").unmatched_entities == 0


@given(st.text(max_size=200), st.text(max_size=200))
def test_accepts_any_text(question: str, text: str) -> None:
    found = judge(question, text)
    assert 0 <= found.missing_rare_term <= 1
    assert found.negation_mismatch in (0, 1)
    assert found.unmatched_entities >= 0
