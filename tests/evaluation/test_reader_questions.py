"""The readers' questions about the sample books: what they contain, and bars for the answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bythebook.evaluation.grade import Places
from bythebook.evaluation.questions import Row, plain_text, read_row
from bythebook.ingestion.read_book import read_book
from bythebook.language.text import word_set
from tests.support.command import run
from tests.support.samples import ROOT, SAMPLE_BOOK

_QUESTIONS = SAMPLE_BOOK / "reader-questions.jsonl"
_ANSWERABLE = word_set(
    "define compare howto why when list troubleshoot overview multipart code number yesno"
)
# Bars of the extractive writer, five points below what was measured. The second book and its
# questions were written by people who did not know the program; nothing is fitted to them.
SECOND_BOOK = ROOT / "examples" / "beekeeping"
LEAST_OF_SECOND_BOOK = {
    "useful": 0.68,
    "vital_recall": 0.70,
    "answered": 0.91,
    "refused.near": 0.55,
    "refused.off": 0.95,
}
LEAST = {
    "useful": 0.89,
    "vital_recall": 0.89,
    "answered": 0.92,
    "refused.near": 0.9,
    "refused.off": 0.95,
    "refused.chat": 0.95,
}
MOST = {"words": 160.0}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    lines = _QUESTIONS.read_text("utf-8").splitlines()
    return [read_row(json.loads(line), default_id="") for line in lines]


@pytest.fixture(scope="module")
def book() -> Places:
    return Places({passage.id: passage for passage in read_book(SAMPLE_BOOK / "docs").passages})


def test_every_kind_of_question_is_there(rows: list[Row]) -> None:
    kinds = Counter((row.kind, row.answerable) for row in rows)
    assert {kind for kind, answerable in kinds if answerable} == _ANSWERABLE
    assert all(kinds[kind, True] >= 5 for kind in _ANSWERABLE)
    assert kinds["near", False] >= 12
    assert kinds["off", False] >= 5
    assert kinds["chat", False] >= 3
    assert len({row.id for row in rows}) == len({row.question for row in rows}) == len(rows)
    older = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8")
    assert not [row.question for row in rows if json.dumps(row.question) in older]


def test_every_nugget_is_in_its_sections(rows: list[Row], book: Places) -> None:
    for row in rows:
        assert (row.key is not None) == row.answerable == bool(row.places), row.id
        if row.key is None:
            continue
        where = book.whereabouts(row)
        assert where is not None, row.id
        assert where.files == {place.file for place in row.places}, row.id
        text = plain_text("\n".join(book.passages[name].text for name in where.passage_ids))
        missing = [nugget.name for nugget in row.key.nuggets if not nugget.is_in(text)]
        assert not missing, f"{row.id}: {missing}"


@pytest.mark.slow
def test_the_answers_reach_the_bars(sample_home: Path) -> None:
    _reaches(_QUESTIONS, sample_home, LEAST)


@pytest.mark.slow
def test_the_answers_about_the_second_book_reach_the_bars(tmp_path: Path) -> None:
    done = run("ingest", str(SECOND_BOOK / "docs"), "--home", str(tmp_path))
    assert done.returncode == 0, done.stderr
    _reaches(SECOND_BOOK / _QUESTIONS.name, tmp_path, LEAST_OF_SECOND_BOOK)


def _reaches(questions: Path, home: Path, least: dict[str, float]) -> None:
    done = run("eval", str(questions), "--home", str(home), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    figures = found["figures"]
    assert {name: figures[name] for name, bar in least.items() if figures[name] < bar} == {}
    assert {name: figures[name] for name, bar in MOST.items() if figures[name] > bar} == {}
    missed = [row for row in found["nuggets"] if not row["useful"]]
    assert all(row["missing"] or row["forbidden"] for row in missed)
