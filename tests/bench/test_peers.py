"""The rules by which systems are compared are the same for every way of splitting a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.peers.rules import Judge, Row, copies, count_whole

FIRST = "The Normans gave their name to Normandy, a region in the north of France."
SECOND = "Oxygen was discovered by Carl Wilhelm Scheele in Uppsala in the year 1773."
ROW = Row("Who discovered oxygen?", "answerable", "page.md", 1)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    page = f"# Page\n\n## One\n\n{FIRST}\n\n## Two\n\n{SECOND}\n"
    (tmp_path / "page.md").write_text(page, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [SECOND, SECOND[:50], f"## Two\n\n**{SECOND}**", f"{FIRST}\n\n{SECOND}"],
    ids=["the paragraph", "a piece of it", "with its heading", "among others"],
)
def test_a_hit_is_right_however_the_page_was_cut(docs: Path, text: str) -> None:
    assert Judge(docs).is_right(ROW, "page.md", text)


@pytest.mark.parametrize(
    ("file", "text"),
    [("page.md", FIRST), ("page.md", "## Two"), ("other.md", SECOND)],
    ids=["a neighbour", "a heading alone", "another page"],
)
def test_a_hit_beside_the_paragraph_is_wrong(docs: Path, file: str, text: str) -> None:
    assert not Judge(docs).is_right(ROW, file, text)


def test_a_fence_is_whole_in_one_chunk_of_its_page_or_not_at_all() -> None:
    pages = {"a.md": "```\nfirst line\nsecond line\n```\n"}
    halves = [{"file": "a.md", "text": "first line"}, {"file": "a.md", "text": "second line"}]
    elsewhere = [{"file": "b.md", "text": "first line\nsecond line"}]
    whole = [{"file": "a.md", "text": "Before.\n\n  first line\n  second line\n\nAfter."}]
    assert count_whole(pages, halves + elsewhere) == (0, 1)
    assert count_whole(pages, whole) == (1, 1)


def test_no_two_copies_of_a_paragraph_are_the_same(docs: Path) -> None:
    made = [chunk for _, chunk in copies(docs, 40)]
    assert len({chunk["text"] for chunk in made}) == 40
    assert {number for number, _ in copies(docs, 40)} == {0, 1}
