"""Whoever opens a library closes it, also where something goes wrong."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bythebook
from bythebook import wiring
from bythebook.book import Book
from bythebook.cli import main
from bythebook.errors import StoreFailed
from tests.samples import small_book

_QUESTION = "At how many degrees does a kettle boil water?"


class _Counts:
    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> _Counts:
    counted = _Counts()
    close = Book.close

    class Counted(Book):
        def __init__(self, **parts: Any) -> None:
            super().__init__(**parts)
            counted.opened += 1

        async def close(self) -> None:
            counted.closed += 1
            await close(self)

    monkeypatch.setattr(wiring, "Book", Counted)
    return counted


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("closing")
    small_book(folder / "docs")
    return folder


def _command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["bythebook", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code in (0, 1)


def test_every_command_closes_what_it_opened(
    book: Path, counts: _Counts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = ("--home", str(tmp_path / "home"))
    docs = shutil.copytree(book / "docs", tmp_path / "docs")
    batch = tmp_path / "batch.jsonl"
    batch.write_text(json.dumps({"question": _QUESTION}))
    for expected, arguments in enumerate(
        (
            ("ingest", str(docs)),
            ("ingest", str(docs)),  # nothing has changed
            ("ask", _QUESTION),
            ("ask", "--batch", str(batch)),
            ("search", _QUESTION),
            ("search", "--batch", str(batch)),
            ("check", "index"),
            ("check", "index", "--repair"),
            ("eval", str(batch)),
        ),
        1,
    ):
        _command(monkeypatch, *arguments, *home)
        assert (counts.opened, counts.closed) == (expected, expected), arguments


@pytest.mark.parametrize(
    "call",
    [
        lambda home: bythebook.ask(_QUESTION, home=home),
        lambda home: bythebook.semantic_search(_QUESTION, home=home),
        lambda home: bythebook.respond(_QUESTION, home=home),
    ],
)
def test_every_call_closes_what_it_opened_even_if_it_fails(
    call: Callable[[Path], object],
    sample_home: Path,
    counts: _Counts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call(sample_home)
    assert (counts.opened, counts.closed) == (1, 1)

    async def fail(*_: object, **__: object) -> None:
        raise StoreFailed("The store is away.")

    for name in ("reply", "search"):
        monkeypatch.setattr(Book, name, fail)
    with pytest.raises(StoreFailed):
        call(sample_home)
    assert (counts.opened, counts.closed) == (2, 2)
