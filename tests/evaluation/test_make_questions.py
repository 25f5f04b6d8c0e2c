"""Generated questions: their answers, sections and rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.evaluation.grade import holds
from bythebook.evaluation.make_questions import make_questions
from bythebook.evaluation.questions import read_row, score_nuggets
from bythebook.ingestion.read_book import read_book
from bythebook.types import Passage
from tests.support.samples import SAMPLE_BOOK, passage


@pytest.fixture(scope="module")
def book() -> tuple[Passage, ...]:
    return tuple(read_book(SAMPLE_BOOK / "docs").passages)


@pytest.fixture(scope="module")
def rows(book: tuple[Passage, ...]) -> list[dict[str, Any]]:
    return make_questions(book, 90)


def test_the_requested_number_of_questions_is_spread_over_the_rules(
    rows: list[dict[str, Any]],
) -> None:
    kinds = [row["kind"] for row in rows]
    assert len(rows) == len({row["id"] for row in rows}) == 90
    assert kinds.count("held_out") == 30
    assert all(kinds.count(rule) >= 10 for rule in ("definition", "gap", "heading", "list"))
    assert all(kinds.count(rule) >= 2 for rule in ("how", "why", "compare"))
    assert len({(row["file"], row["section"]) for row in rows}) >= 40  # spread over the book


def test_every_answer_is_in_its_section(
    rows: list[dict[str, Any]], book: tuple[Passage, ...]
) -> None:
    for row in rows:
        read_row(row, default_id="")
        texts = [
            p.text
            for p in book
            if p.place.file == row["file"] and p.place.heading == row["section"]
        ]
        assert row["is_impossible"] or any(holds(text, row["answers"]) for text in texts), row


def test_a_held_out_question_is_also_asked_with_its_section(rows: list[dict[str, Any]]) -> None:
    answerable = {row["question"] for row in rows if not row["is_impossible"]}
    held_out = [row for row in rows if row["is_impossible"]]
    for row in held_out:
        assert row["question"] in answerable
        assert row["held_out"]["file"] == row["file"]
        assert row["answers"] == []


def test_the_same_seed_gives_the_same_questions(book: tuple[Passage, ...]) -> None:
    assert make_questions(book, 20, seed=7) == make_questions(reversed(book), 20, seed=7)
    assert make_questions(book, 20, seed=7) != make_questions(book, 20, seed=8)


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        (
            "A kite is a tethered aircraft that the wind carries.",
            "What is a kite?",
            "a tethered aircraft",
        ),
        (
            "Most kites need a wind of 12 kilometres per hour to fly.",
            "Most kites need a wind of how many kilometres per hour to fly?",
            "12 kilometres",
        ),
        (
            "Francis Ronalds flew kites over London in 1847 and wrote about them.",
            "Francis Ronalds flew kites over London in what year and wrote about them?",
            "1847",
        ),
        (
            "The oldest paintings of kites come from China.",
            "The oldest paintings of kites come from what?",
            "China",
        ),
    ],
)
def test_the_rules(sentence: str, question: str, answer: str) -> None:
    rows = make_questions([passage(sentence)], 10)
    assert (question, [answer]) in [(row["question"], row["answers"]) for row in rows]


@pytest.mark.parametrize(
    ("heading", "text", "kind", "question"),
    [
        ("How to fly a kite", "Run against the wind.", "how", "How do I fly a kite?"),
        ("How kites fly", "The wind lifts them.", "how", "Can you explain how kites fly?"),
        ("Why kites fall", "The wind stops at night.", "why", "Can you explain why kites fall?"),
        ("Knots: why do they slip?", "The line is wet.", "why", "Knots: why do they slip?"),
        (
            "Delta vs box kite",
            "A delta needs less wind.",
            "compare",
            "What is the difference between Delta and box kite?",
        ),
        (
            "Sails and tails",
            "Sails lift, while tails steady the kite.",
            "compare",
            "What is the difference between Sails and tails?",
        ),
    ],
)
def test_headings_become_questions(heading: str, text: str, kind: str, question: str) -> None:
    made = [(row["kind"], row["question"]) for row in make_questions([passage(text)], 9)]
    assert (kind, question) not in made
    rows = make_questions([passage(text, section=heading)], 9)
    assert (kind, question) in [(row["kind"], row["question"]) for row in rows]
    assert all((row["file"], row["section"]) == ("a.md", heading) for row in rows)


def test_two_nouns_without_a_contrast_are_not_compared() -> None:
    rows = make_questions([passage("Sails and tails are sewn.", section="Sails and tails")], 9)
    assert "compare" not in [row["kind"] for row in rows]


def test_a_counted_list_has_a_nugget_for_each_item() -> None:
    text = "A kite has three parts:\n\n- Sail: it lifts.\n- the long tail\n- A string of *silk*"
    row = next(r for r in make_questions([passage(text, section="Parts")], 9) if r.get("nuggets"))
    assert (row["kind"], row["question"]) == ("list", "What are the three parts in Parts?")
    assert row["nuggets"][0] == {"any": ["sail"], "vital": True}
    key = read_row(row, default_id="").key
    assert key is not None
    assert score_nuggets(text, key).recall == 1
    assert score_nuggets("A sail.", key).found == 1
    other = text.replace("three", "four")
    rows = make_questions([passage(other, section="Parts")], 9)
    assert "list" not in [each["kind"] for each in rows]


def test_two_columns_that_the_text_names_are_compared() -> None:
    table = "| Trait | Delta | Box |\n|---|---|---|\n| wind | little | much |"
    text = f"A delta is light. A box is strong.\n\n{table}"
    rows = make_questions([passage(text, section="Shapes")], 9)
    question = "What is the difference between Delta and Box?"
    assert ("compare", question) in [(row["kind"], row["question"]) for row in rows]
    rows = make_questions([passage(table, section="Shapes")], 9)
    assert "compare" not in [row["kind"] for row in rows]


def test_sentences_that_depend_on_another_are_skipped() -> None:
    text = "It is a tethered aircraft with 12 strings. These need 40 metres of free space around."
    assert make_questions([passage(text)], 10) == []


def test_questions_that_two_sections_answer_are_not_held_out() -> None:
    sentence = "A kite is a tethered aircraft that the wind carries."
    again = "As we said before, a kite is carried by the wind."
    book = [passage(sentence, section="One"), passage(again, section="Two")]
    assert [row["kind"] for row in make_questions(book, 10)] == ["definition"]


@given(st.lists(st.text(max_size=80), max_size=6), st.integers(1, 9))
def test_any_text_yields_valid_rows(texts: list[str], count: int) -> None:
    rows = make_questions([passage(text) for text in texts], count)
    assert len(rows) <= count
    for row in rows:
        assert read_row(row, default_id="").question
