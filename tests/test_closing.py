"""Whatever opens a book closes it: no open file, no thread and no warning is left."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bythebook
from bythebook.errors import InvalidInput
from tests.support.command import run
from tests.support.samples import small_book

_QUESTION = "At how many degrees does a kettle boil water?"


def _open_files(folder: Path) -> list[str]:
    """Return the files below a folder that this process holds open."""
    paths = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            paths.append(str(descriptor.readlink()))
        except OSError:  # closed meanwhile
            continue
    return [path for path in paths if path.startswith(str(folder))]


@pytest.fixture
def closing(tmp_path: Path) -> Iterator[Path]:
    """Yield an empty home; afterwards, check that nothing is left open in it."""
    before = set(threading.enumerate())
    yield tmp_path / "home"
    gc.collect()  # pytest turns a ResourceWarning of an object that was not closed into an error
    assert _open_files(tmp_path / "home") == []
    left = [thread for thread in set(threading.enumerate()) - before if thread.name != "database"]
    assert left == []
    for thread in set(threading.enumerate()) - before:
        thread.join(10)  # the database's threads end by themselves
        assert not thread.is_alive()


def test_every_command_closes_what_it_opened(closing: Path, tmp_path: Path) -> None:
    docs = small_book(tmp_path / "docs")
    batch = tmp_path / "batch.jsonl"
    batch.write_text(json.dumps({"question": _QUESTION}))
    for arguments in (
        ("ingest", str(docs)),
        ("ingest", str(docs)),  # nothing has changed
        ("ask", _QUESTION),
        ("ask", "--batch", str(batch)),
        ("search", _QUESTION),
        ("search", "--batch", str(batch)),
        ("check", "index"),
        ("check", "index", "--repair"),
        ("eval", str(batch)),
    ):
        done = run(*arguments, "--home", str(closing))
        assert done.returncode in (0, 1), done.stderr
        gc.collect()
        assert _open_files(closing) == [], arguments


def test_every_call_closes_what_it_opened(closing: Path, tmp_path: Path) -> None:
    docs = small_book(tmp_path / "docs")
    calls: list[Callable[[], object]] = [
        lambda: bythebook.ingest(docs, home=closing),
        lambda: bythebook.ask(_QUESTION, home=closing),
        lambda: bythebook.search(_QUESTION, home=closing),
        lambda: bythebook.semantic_search(_QUESTION, home=closing),
        lambda: bythebook.respond(_QUESTION, home=closing),
    ]
    for call in calls:
        call()
        gc.collect()
        assert _open_files(closing) == []


def test_a_book_is_closed_if_the_work_fails(closing: Path, tmp_path: Path) -> None:
    with bythebook.open_book(closing, new=True) as book:
        assert book.ingest(small_book(tmp_path / "docs")).chunks_created
        assert _open_files(closing)
        with pytest.raises(InvalidInput):
            book.run(_fail)
        assert isinstance(book.ask(_QUESTION).outcome, bythebook.Answer)
    with pytest.raises(RuntimeError, match="closed"):
        book.ask(_QUESTION)
    with pytest.raises(InvalidInput), bythebook.open_book(closing):
        raise InvalidInput("The question is not a text.")


async def _fail(book: bythebook.Book) -> None:
    raise InvalidInput("The question is not a text.")


def test_a_book_that_cannot_be_opened_leaves_nothing(closing: Path) -> None:
    with pytest.raises(bythebook.BookError), bythebook.open_book(closing):
        pass
    assert not closing.exists()
