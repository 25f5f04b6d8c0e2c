"""Support by two verifiers: the lower probability counts."""

import pytest

from bythebook.grounding.joint_support import joint_support
from bythebook.interfaces.reader import SentenceSupport


def test_a_sentence_has_the_lower_probability_and_the_first_passage() -> None:
    first = [SentenceSupport(0.9, 1), SentenceSupport(0.2, None), SentenceSupport(0.0, None)]
    second = [SentenceSupport(0.5, 3), SentenceSupport(0.95, 2), SentenceSupport(0.0, None)]
    assert joint_support(first, second) == [
        SentenceSupport(0.5, 1),
        SentenceSupport(0.2, 2),
        SentenceSupport(0.0, None),
    ]


def test_both_have_to_be_about_the_same_sentences() -> None:
    with pytest.raises(ValueError, match="shorter"):
        joint_support([SentenceSupport(0.9, 1)], [])
