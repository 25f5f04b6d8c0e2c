"""What speaks against a passage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.terms import Vocabulary
from bythebook.retrieval.counter_evidence import CounterEvidence, counter_evidence
from tests.samples import passage

TEXT = "The Norman king William crossed the Channel in 1066. He did not return before winter."


def judge(question: str, text: str = TEXT) -> CounterEvidence:
    found = passage(text, section="Conquest")
    asked = Vocabulary.of([found]).ask(question)
    return counter_evidence(question, asked, found, [0.5] * len(found.units))


def test_a_question_in_the_words_of_the_book_meets_no_doubt() -> None:
    assert judge("When did king William cross the Channel?") == CounterEvidence(0, 0, 0)


def test_a_word_that_the_nearest_sentence_lacks_counts_by_its_rarity() -> None:
    assert judge("Which horses crossed the Channel?").missing == 1
    assert judge("Who crossed the Channel?").missing == 0


@pytest.mark.parametrize(
    "question",
    ["When did the king not cross the Channel?", "Which king didn’t cross the Channel?"],
)
def test_a_denied_question_about_an_affirmed_fact_is_doubted(question: str) -> None:
    assert judge(question).denied == 1


def test_a_denied_question_about_a_denied_fact_is_not() -> None:
    assert judge("Why did he not return before winter?").denied == 0


def test_names_and_numbers_from_elsewhere_are_strange() -> None:
    assert judge("What did King Harold do in 1067?").strange == 2
    assert judge("What did the Norman William do in 1066?").strange == 0


def test_a_name_in_the_headings_is_no_stranger() -> None:
    assert judge("What about the Conquest?").strange == 0


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_read(question: str, text: str) -> None:
    found = judge(question, text)
    assert 0 <= found.missing <= 1
    assert found.denied in (0, 1)
    assert found.strange >= 0
