"""Rows of question sets: reading, sampling, and scoring answers by nuggets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import InvalidInput
from bythebook.evaluation.questions import (
    LONGEST_PATTERN,
    LONGEST_TEXT,
    MOST_WORDS,
    GoldPlace,
    NuggetKey,
    Row,
    Section,
    plain_text,
    read_nuggets,
    read_row,
    sample,
    score_nuggets,
)


def test_a_row_of_a_question_set() -> None:
    fields = {
        "id": "q1",
        "kind": "selected",
        "question": "How long?",
        "is_impossible": False,
        "answers": ["twelve weeks"],
        "file": "intro.md",
        "held_out": {"file": "a.md", "section": ["Kites", "Strings"]},
    }
    row = Row("q1", "How long?", "selected", True, ("twelve weeks",), "intro.md", "Plan", "text")
    row = replace(row, held_out=Section("a.md", ("Kites", "Strings")))
    for names in (
        {"section": "Plan", "selected_text": "text"},
        {"heading": "Plan", "selection": "text"},
    ):
        assert read_row({**fields, **names}, default_id="x:1") == row


def test_a_row_needs_only_a_question() -> None:
    yes = read_row({"question": "How long?", "answers": ["a week"]}, default_id="x:1")
    assert (yes.id, yes.kind, yes.answerable) == ("x:1", "answerable", True)
    no = read_row({"question": "Why?", "is_impossible": True}, default_id="x:2")
    assert (no.kind, no.answerable) == ("unanswerable", False)


def test_a_row_with_nuggets() -> None:
    row = read_row(
        {
            "question": "How does it fly?",
            "kind": "howto",
            "answerable": True,
            "gold": [{"file": "a.md", "heading": "Wind"}, {"file": "b.md"}],
            "nuggets": [{"any": ["wind"], "vital": True}],
            "must_not": ["engine"],
        },
        default_id="x:1",
    )
    assert (row.file, row.heading) == ("a.md", "Wind")
    assert row.places == (GoldPlace("a.md", "Wind"), GoldPlace("b.md"))
    assert row.key is not None
    assert [each.pattern for each in row.key.must_not] == ["engine"]
    no = read_row({"question": "Why?", "kind": "near", "answerable": False}, default_id="x:2")
    assert (no.answerable, no.key, no.places) == (False, None, ())


@pytest.mark.parametrize(
    "fields",
    [
        {"answerable": "yes"},
        {"answerable": True, "is_impossible": True},
        {"gold": {"file": "a.md"}},
        {"gold": [{"heading": "Wind"}]},
        {"nuggets": [{"any": ["a"]}], "answerable": False},
        {"answers": "twelve"},
        {"answers": [12]},
        {"is_impossible": "no"},
        {"file": 3},
        {"selection": ["a"]},
        {"held_out": "a.md"},
        {"answers": ["yes"], "is_impossible": True},
    ],
)
def test_an_invalid_field_is_named(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=f'"{next(iter(fields))}"'):
        read_row({"question": "?", **fields}, default_id="1")


def _rows(kinds: list[str]) -> list[Row]:
    return [Row(str(n), f"question {n}", kind, True) for n, kind in enumerate(kinds)]


def test_a_sample_keeps_the_proportions_and_the_order() -> None:
    rows = _rows(["a"] * 60 + ["b"] * 30 + ["c"])
    drawn = sample(rows, 31)
    assert Counter(row.kind for row in drawn) == {"a": 20, "b": 10, "c": 1}
    assert drawn == sorted(drawn, key=rows.index)


@given(st.lists(st.sampled_from("abc")), st.integers(1, 50), st.randoms())
def test_a_sample_does_not_depend_on_the_order(
    kinds: list[str], limit: int, chance: object
) -> None:
    rows = _rows(kinds)
    drawn = sample(rows, limit)
    assert len(drawn) == min(limit, len(rows))
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert {row.id for row in sample(shuffled, limit)} == {row.id for row in drawn}


# --- nuggets -------------------------------------------------------------------------------------


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


@given(st.text(alphabet="ab()[]{}*+?\\|^$.,2:<=!-", max_size=30), st.text(max_size=50))
def test_any_pattern_is_used_or_refused(pattern: str, answer: str) -> None:
    try:
        score = score_nuggets(answer, _key(pattern))
    except InvalidInput:
        return
    assert score.vital == 1
    assert score.found + len(score.missing) == 1
