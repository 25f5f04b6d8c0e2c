"""The sample book and its questions are what the README says they are."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bythebook.ingestion.read_book import ParsedBook, read_book
from tests.support.samples import SAMPLE_BOOK


@pytest.fixture(scope="module")
def book() -> ParsedBook:
    return read_book(SAMPLE_BOOK / "docs")


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    lines = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_it_is_a_book_of_some_size(book: ParsedBook) -> None:
    english = [page for page in book.pages if not page.file.startswith("i18n/")]
    assert len(english) >= 14
    assert sum(page.visible_words for page in english) >= 12_000
    assert len({p.place.module for p in book.passages}) >= 4
    assert any(p.metadata.language == "ur" for p in book.passages)
    assert book.coverage == 1
    assert not [problem for problem in book.problems if problem.fatal]


def test_there_are_120_questions_of_three_kinds(questions: list[dict[str, Any]]) -> None:
    assert Counter((row["kind"], row["is_impossible"]) for row in questions) == {
        ("answerable", False): 70,
        ("off_book", True): 30,
        ("selected_text", False): 10,
        ("selected_text", True): 10,
    }
    assert (
        len({row["id"] for row in questions}) == len({row["question"] for row in questions}) == 120
    )


def test_every_answer_stands_where_it_is_said_to_stand(
    book: ParsedBook, questions: list[dict[str, Any]]
) -> None:
    for row in questions:
        if row["is_impossible"]:
            assert row["answers"] == []
            continue
        found = [
            passage
            for passage in book.passages
            if passage.place.file == row["file"]
            and passage.place.heading == row["section"]
            and _flat(row["sentence"]) in _flat(passage.text)
        ]
        assert found, f"{row['id']}: {row['sentence']}"
        assert all(answer in row["sentence"] for answer in row["answers"])
        if row["kind"] == "selected_text":
            assert _flat(row["sentence"]) in _flat(row["selected_text"])


def test_the_site_is_a_docusaurus_project() -> None:
    for name in ("package.json", "docusaurus.config.js", "sidebars.js", "docs", "i18n/ur"):
        assert (SAMPLE_BOOK / Path(name)).exists()
