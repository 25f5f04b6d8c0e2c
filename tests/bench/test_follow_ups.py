"""The follow-ups of the sample book: the rows are valid, and most answers cite a right section."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from bench.follow_ups import ask_all, development, figures, grade, held_out, read_rows, share

from bythebook.api import open_book
from bythebook.ingestion.read_book import read_book
from bythebook.testing import fake_book
from bythebook.types import Question
from tests.support.samples import SAMPLE_BOOK

_ROWS = read_rows()


def test_every_gold_section_exists_and_shows_the_answers() -> None:
    texts: defaultdict[tuple[str, str], str] = defaultdict(str)
    for passage in read_book(SAMPLE_BOOK / "docs").passages:
        texts[passage.place.file, passage.place.heading] += passage.text.lower()
    for row in _ROWS:
        assert row.gold <= texts.keys(), row.id
        gold = "".join(texts[section] for section in row.gold)
        assert all(answer.lower() in gold for answer in row.answers), row.id
        assert bool(row.answers) is bool(row.gold), row.id


def test_rows_are_unique_and_both_halves_have_every_kind() -> None:
    assert len({row.id for row in _ROWS}) == len({(row.history, row.question) for row in _ROWS})
    assert len(_ROWS) == len({row.id for row in _ROWS}) >= 60
    assert all(row.history for row in _ROWS)
    kinds = [Counter(row.kind for row in half) for half in (development(_ROWS), held_out(_ROWS))]
    assert kinds[0].keys() == kinds[1].keys()
    assert kinds[0]["switch"] + kinds[1]["switch"] >= 12


async def test_a_refusal_is_right_only_without_gold() -> None:
    unknown = next(row for row in _ROWS if not row.gold)
    known = next(row for row in _ROWS if row.gold)
    reply = await (await fake_book()).ask(Question("Who won the football world cup?"))
    assert grade(unknown, reply).any
    assert grade(unknown, reply).said
    assert not grade(known, reply).any
    assert grade(known, reply).refused


@pytest.mark.slow
async def test_most_follow_ups_cite_a_right_section(sample_home: Path) -> None:
    async with open_book(sample_home) as book:
        outcomes = await ask_all(book, _ROWS)
    print(figures("all", outcomes))
    assert share(outcomes, lambda each: each.first) >= 0.87
    assert share(outcomes, lambda each: each.any) >= 0.93
    assert share(outcomes, lambda each: each.said) >= 0.78
    switched = [each for each in outcomes if each.row.kind == "switch"]
    assert share(switched, lambda each: each.any) >= 0.9
