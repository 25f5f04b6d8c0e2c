"""Reading and sampling the rows of question sets."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import InvalidInput
from bythebook.evaluation.questions import GoldPlace, Row, Section, read_row, sample


def test_a_row_of_a_question_set() -> None:
    row = read_row(
        {
            "id": "q1",
            "kind": "answerable",
            "question": "How long?",
            "is_impossible": False,
            "answers": ["twelve weeks"],
            "file": "intro.md",
            "section": "Plan",
            "selected_text": None,
        },
        default_id="x:1",
    )
    assert row == Row("q1", "How long?", "answerable", True, ("twelve weeks",), "intro.md", "Plan")


def test_a_row_needs_only_a_question() -> None:
    yes = read_row({"question": "How long?", "answers": ["a week"]}, default_id="x:1")
    assert (yes.id, yes.kind, yes.answerable) == ("x:1", "answerable", True)
    no = read_row({"question": "Why?", "is_impossible": True}, default_id="x:2")
    assert (no.kind, no.answerable) == ("unanswerable", False)


def test_heading_and_selection_have_an_alternative_name() -> None:
    one = read_row({"question": "?", "heading": "H", "selection": "text"}, default_id="1")
    other = read_row({"question": "?", "section": "H", "selected_text": "text"}, default_id="1")
    assert one == other


def test_a_held_out_section() -> None:
    fields = {"question": "?", "is_impossible": True}
    held_out = {"file": "a.md", "section": ["Kites", "Strings"]}
    row = read_row({**fields, "held_out": held_out}, default_id="1")
    assert row.held_out == Section("a.md", ("Kites", "Strings"))


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
