"""Scoring answers by nuggets, and checking the patterns of a question set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import InvalidInput
from bythebook.evaluation.questions import (
    LONGEST_PATTERN,
    LONGEST_TEXT,
    MOST_WORDS,
    NuggetKey,
    plain_text,
    read_nuggets,
    score_nuggets,
)


def _key(*patterns: str, must_not: tuple[str, ...] = ()) -> NuggetKey:
    rows = [{"any": [pattern]} for pattern in patterns]
    key = read_nuggets({"nuggets": rows, "must_not": list(must_not)})
    assert key is not None
    return key


@pytest.mark.parametrize(
    ("answer", "found", "useful"),
    [
        ("A kite has a sail, a tail and a string.", 3, True),
        ("A kite has a sail and a tail.", 2, True),
        ("A kite has a sail.", 1, False),
        ("It flies.", 0, False),
        (None, 0, False),
    ],
)
def test_two_thirds_of_the_vital_nuggets_are_useful(
    answer: str | None, found: int, useful: bool
) -> None:
    score = score_nuggets(answer, _key("sail", "tail", "string"))
    assert (score.found, score.useful) == (found, useful)
    assert score.recall == found / 3
    assert len(score.missing) == 3 - found


@pytest.mark.parametrize(("vital", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 4)])
def test_how_many_nuggets_are_needed(vital: int, needed: int) -> None:
    key = _key(*(f"fact{number}" for number in range(vital)))
    for found in range(vital + 1):
        answer = " ".join(f"fact{number}" for number in range(found))
        assert score_nuggets(answer, key).useful == (found >= needed)


def test_nuggets_that_are_not_vital_do_not_count() -> None:
    key = read_nuggets({"nuggets": [{"any": ["sail", "cloth"]}, {"any": ["red"], "vital": False}]})
    assert key is not None
    score = score_nuggets("The cloth is blue.", key)
    assert (score.vital, score.useful, score.missing) == (1, True, ())


def test_a_forbidden_statement_or_too_many_words_make_an_answer_useless() -> None:
    key = _key("sail", must_not=("no sail",))
    assert score_nuggets("It has a sail.", key).useful
    score = score_nuggets("It has no sail.", key)
    assert (score.useful, score.forbidden) == (False, ("no sail",))
    assert score_nuggets("sail " * MOST_WORDS, key).useful
    assert not score_nuggets("sail " * (MOST_WORDS + 1), key).useful


def test_patterns_see_plain_text() -> None:
    shown = "The **ROS’s** `use_sim_time`\n\n| is | it |[1][23] ﬁne"
    assert plain_text(shown) == "the ros's use sim time is it fine"
    assert score_nuggets(shown, _key("ROS’s use sim time")).useful
    assert score_nuggets("Is 20 Hz", _key(r"\D20\W")).useful


def test_the_text_that_is_searched_is_bounded() -> None:
    answer = "a" * LONGEST_TEXT + " sail"
    assert not score_nuggets(answer, _key("sail")).useful
    assert score_nuggets(answer[1 - len(" sail") :], _key("sail")).useful


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"nuggets": [{"any": ["(sail"]}]}, "'\\(sail' is invalid"),
        ({"nuggets": [{"any": ["(?:a+)+b"]}]}, "repeats a group"),
        ({"nuggets": [{"any": ["(a|aa){2,}b"]}]}, "repeats a group"),
        ({"nuggets": [{"any": [".*a.*b.*c.*d.*e"]}]}, "more than 4"),
        ({"nuggets": [{"any": ["a" * (LONGEST_PATTERN + 1)]}]}, "longer than"),
        ({"nuggets": [{"any": [""]}]}, "empty"),
        ({"nuggets": [{"any": [3]}]}, "not a text"),
        ({"nuggets": [{"any": []}]}, "no pattern"),
        ({"nuggets": [{"any": "sail"}]}, '"any" is not a list'),
        ({"nuggets": [{"any": ["sail"], "vital": 1}]}, "vital"),
        ({"nuggets": [{"any": ["sail"], "vital": False}]}, "no vital nugget"),
        ({"nuggets": ["sail"]}, "is not {"),
        ({"nuggets": {"any": ["sail"]}}, '"nuggets" is not a list'),
        ({"nuggets": [{"any": ["sail"]}], "must_not": ["[a"]}, '"must_not": the pattern'),
        ({"must_not": ["sail"]}, 'without "nuggets"'),
    ],
)
def test_a_pattern_that_cannot_be_used_is_an_error(
    fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_nuggets(fields)


@pytest.mark.parametrize("pattern", [r"a(?:b|c)?d", r"\(a\)+", r"[)*+]b", r"a.*b.*c", r"x{2,3}"])
def test_a_usual_pattern_is_accepted(pattern: str) -> None:
    assert _key(pattern).nuggets[0].name == pattern


def test_a_row_without_nuggets_has_no_key() -> None:
    assert read_nuggets({}) is None
    assert read_nuggets({"nuggets": [], "must_not": []}) is None


@given(st.text(alphabet="ab()[]{}*+?\\|^$.,2:<=!-", max_size=30), st.text(max_size=50))
def test_any_pattern_is_used_or_refused(pattern: str, answer: str) -> None:
    try:
        score = score_nuggets(answer, _key(pattern))
    except InvalidInput:
        return
    assert score.vital == 1
    assert score.found + len(score.missing) == 1
