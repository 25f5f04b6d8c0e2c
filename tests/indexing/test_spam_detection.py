"""Files that look like spam are reported, and those of real books are not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.indexing.spam_detection import find_spam
from tests.support.samples import FEATURES, ROOT, SAMPLE_BOOK, WORKSHOP, passage, read

_THINGS = (
    "kettle", "kite", "pump", "lathe", "clock", "motor", "crane", "valve", "bridge", "canal",
    "plough", "loom", "wheel", "lever", "pulley", "spring",
)  # fmt: skip
_PAGE = "# Kettles\n\nA kettle boils its water. It switches itself off. The lid stays shut.\n"


def _alarm(folder: Path, planted: str, *, name: str = "planted.md") -> tuple[str, ...]:
    (folder / "kettles.md").write_text(_PAGE)
    (folder / name).write_text(f"# Notes\n\n{planted}\n")
    return find_spam(read(folder).passages)


_PLANTED: dict[str, Callable[[str], str]] = {
    "denials": lambda thing: f"The book has no information about the {thing}.",
    "the same denial": lambda thing: f"## Of the {thing}\n\nThe book does not say.",
    "questions": lambda thing: f"Who invented the {thing} and what is it for?",
    "questions and denials": lambda thing: f"What does a {thing} do? Nobody can tell you that.",
    "words repeated": lambda thing: f"{thing} water boiling lid steam. " * 6,
}


@pytest.mark.parametrize("kind", _PLANTED)
def test_a_file_of_similar_sentences_is_reported_with_a_hint(kind: str, tmp_path: Path) -> None:
    [told] = _alarm(tmp_path, "\n\n".join(map(_PLANTED[kind], _THINGS)))
    assert told.startswith("planted.md: ")
    assert "--exclude 'planted.md'" in told


def test_a_copied_page_and_its_copy_are_reported(tmp_path: Path) -> None:
    prose = "\n\n".join(
        f"{thing.title()}s have number {len(thing)} on {thing} row." for thing in _THINGS
    )
    (tmp_path / "first.md").write_text(f"# First\n\n{prose}\n")
    told = _alarm(tmp_path, prose)
    assert [each.partition(":")[0] for each in told] == ["first.md", "planted.md"]
    assert all("stand in other files too" in each for each in told)


def test_answered_questions_are_not_reported(tmp_path: Path) -> None:
    dice = random.Random(1)
    said = (" ".join(dice.sample(_THINGS, 9)) for _ in _THINGS)
    answers = (f"What is a {thing}? {next(said)}. It ends." for thing in _THINGS)
    assert _alarm(tmp_path, "\n\n".join(answers)) == ()


def test_a_short_page_is_not_reported(tmp_path: Path) -> None:
    assert _alarm(tmp_path, "\n\n".join(f"What is a {thing}?" for thing in _THINGS[:8])) == ()


@pytest.mark.parametrize(
    "docs",
    [
        SAMPLE_BOOK / "docs",
        WORKSHOP,
        FEATURES,
        ROOT / "docs",
    ],
    ids=lambda docs: f"{docs.parent.name}/{docs.name}",
)
def test_real_books_are_not_reported(docs: Path) -> None:
    assert find_spam(read(docs).passages) == ()


@given(st.lists(st.text(max_size=80), max_size=30))
def test_any_text_can_be_checked(texts: list[str]) -> None:
    assert len(find_spam([passage(text) for text in texts])) <= 1
