"""Damaged files, unusual environments and hostile text: message, exit code and hint."""

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.support.command import PROGRAM, ask, run, run_process

_QUESTION = "At how many degrees does a kettle boil water?"


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_home, tmp_path / "home"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE served SET vocabulary = x'00'",
        "DROP TABLE served",
        "UPDATE alembic_version SET version_num = '9999'",
    ],
)
def test_a_damaged_database_is_reported_with_a_hint(home: Path, statement: str) -> None:
    with sqlite3.connect(home / "bythebook.db") as connection:
        connection.execute(statement)
    broken = ask(home, _QUESTION)
    assert broken.returncode in (2, 3)
    assert "Traceback" not in broken.stderr
    assert broken.stderr.startswith("bythebook: The ")
    assert "home" in broken.stderr


def test_a_file_that_is_no_database_is_reported_with_a_hint(home: Path) -> None:
    (home / "bythebook.db").write_text("not a database, but long enough to look like one" * 99)
    broken = ask(home, _QUESTION)
    assert (broken.returncode, "damaged" in broken.stderr) == (3, True)


def test_a_home_that_is_a_file_is_reported(tmp_path: Path, book_folder: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (("ask", "kites"), ("ingest", str(book_folder)), ("serve",)):
        done = run(*arguments, "--home", str(tmp_path / "file"))
        assert (done.returncode, "is not a folder" in done.stderr) == (2, True)
    done = run("ingest", str(book_folder), "--home", str(tmp_path / "file" / "below"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("url", ["nonsense", "mysql://localhost/x", "oracle://x"])
def test_an_unreachable_database_is_reported(home: Path, url: str) -> None:
    done = ask(home, "kites", DATABASE_URL=url)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_invalid_bytes_are_reported(home: Path) -> None:
    command = [PROGRAM.encode(), b"ask", b"bad \xff bytes"]
    done = subprocess.run(
        [*command, b"--home", os.fsencode(home)], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"invalid characters" in done.stderr


def test_one_bad_line_does_not_end_a_batch(home: Path, tmp_path: Path) -> None:
    rows = [
        {"id": 1, "question": "kites", "selected_text": 5},
        {"id": 2, "question": "\ud800"},
        {"id": 3, "question": "What\u2028makes a kite fly?"},
    ]
    batch = tmp_path / "batch.jsonl"
    lines = [json.dumps(row) for row in rows[:2]] + [json.dumps(rows[2], ensure_ascii=False)]
    batch.write_text("\ufeff" + "\n".join(lines), "utf-8")
    done = run("ask", "--batch", str(batch), "--home", str(home))
    results = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert ["error" in result for result in results] == [True, True, False]


def test_brackets_in_headings_are_printed_as_text(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Arrays\n\n## About [bold] and [/closing] tags\n\nTags close.\n")
    home = tmp_path / "home"
    assert run("ingest", str(docs), "--home", str(home)).returncode == 0
    for floor in ("0.01", "0.99"):
        done = ask(home, "About closing tags?", BYTHEBOOK_MIN_SCORE=floor)
        assert "About [bold] and [/closing] tags" in done.stdout
        assert done.stderr == ""


def test_a_terminal_without_unicode_gets_question_marks(home: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = run_process("ask", _QUESTION, "--home", str(home), **plain)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_one_message(home: Path) -> None:
    command = f"{PROGRAM} search kites --home {home} > /dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_output_pipe_is_no_error(home: Path) -> None:
    command = f"{PROGRAM} search kites --home {home} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
