"""The data of the benchmarks is built from checked files only, and the same every time."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from bench import fetch_data


def _article(title: str, questions: int) -> fetch_data.Article:
    """An article of three paragraphs; every third question has no answer."""
    return {
        "title": title,
        "paragraphs": [
            {
                "context": f" Paragraph {number} about {title}. ",
                "qas": [
                    {
                        "id": f"{title}-{number}-{asked}",
                        "question": f"What  is {asked}?",
                        "answers": [{"text": title}] if asked % 3 else [],
                        "is_impossible": asked % 3 == 0,
                    }
                    for asked in range(questions)
                ],
            }
            for number in range(3)
        ],
    }


def _articles(*modules: str, questions: int) -> dict[str, fetch_data.Article]:
    titles = [title for module in modules for title in fetch_data._MODULES[module][1]]
    return {title: _article(title, questions) for title in titles}


def test_a_minibook_has_its_pages_and_so_many_questions_of_each_article(tmp_path: Path) -> None:
    first, second, *others = fetch_data._MODULES
    labelled = _articles(first, second, questions=60)
    unlabelled = _articles(*others, questions=0)
    xquad = {title: _article(title, 30) for title in (*unlabelled, *fetch_data._ELSEWHERE)}
    for article in xquad.values():
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                asked.update(answers=[{"text": "x"}], is_impossible=False)
    for folder in ("one", "two"):
        fetch_data.write_minibook(tmp_path / folder, labelled, unlabelled, xquad)
    assert fetch_data.digest_of(tmp_path / "one") == fetch_data.digest_of(tmp_path / "two")
    book = tmp_path / "one"
    assert len(list((book / "docs").rglob("*.md"))) == 13
    rows = [json.loads(line) for line in (book / "qa.jsonl").read_text("utf-8").splitlines()]
    normans = [row["kind"] for row in rows if row["article"] == "Normans"]
    assert (normans.count("answerable"), normans.count("adversarial_unanswerable")) == (63, 50)
    assert sum(row["article"] == "Pharmacy" for row in rows) == 90
    assert len((book / "qa_offbook.jsonl").read_text("utf-8").splitlines()) == 150
    for row in rows:
        page = (book / row["file"]).read_text("utf-8")
        section = page.split(f"## {row['heading']}\n")[1].split("\n## ")[0]
        assert f"Paragraph {row['paragraph']} about {row['article']}." in section
        assert row["question"].startswith("What is ")


def test_a_file_with_another_checksum_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for name in fetch_data.FILES:
        (raw / name).write_bytes(b"{}")
    with pytest.raises(fetch_data.WrongData, match=r"dev-v2\.0\.json has another SHA-256"):
        fetch_data.fetch(raw, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_an_archive_gives_its_pages_and_its_licence_alone(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("docs/a/b.md", "LICENSE", "src/x.js", "docs/../../evil.md", "docs/x.png"):
            entry = tarfile.TarInfo(f"book-1/{name}")
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
    fetch_data.unpack_book(packed.getvalue(), tmp_path / "book")
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert files == {"book/docs/a/b.md"}
    assert (tmp_path / "book" / "LICENSE").exists()
