"""mdBook sources: summary, includes, URLs and anchors."""

from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import ParsedBook, SiteOptions, read_book
from bythebook.sources.mdbook import mdbook_slug

_FILES = {
    "book.toml": '[book]\nlanguage = "en"\n\n[output.html]\nsite-url = "/guide/"\n',
    "src/SUMMARY.md": """# Summary

[Introduction](README.md)

# Flying

- [Kites](kites/README.md)
  - [Steering](kites/steering.md)
- [Not written yet]()

# Reference

- [Listing](listing.md)
- [Lost](lost.md)
- [Outside](../outside.txt)
""",
    "src/README.md": "# Welcome\n\nText before all.\n",
    "src/kites/README.md": "# Kites\n\n## What's a kite?\n\nIt flies.\n\n"
    "## What's a kite?\n\nAgain.\n",
    "src/kites/steering.md": "# Steering\n\n## Left & right\n\nPull.\n\nstd::vec<T> stays.\n",
    "src/listing.md": "# Listing\n\n```rust\n{{#include code/a.rs:body}}\n```\n\n"
    "```rust\n{{#include code/a.rs:1:2}}\n```\n\n{{#include ../../outside.txt}}\n",
    "src/code/a.rs": "fn main() {\n    // ANCHOR: body\n    fly(); # not a heading\n"
    "    // ANCHOR_END: body\n}\n",
    "src/unlisted.md": "# Not in the summary\n\nHidden.\n",
    "outside.txt": "SECRET",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


@pytest.fixture
def book(folder: Path) -> ParsedBook:
    return read_book(folder)


def test_pages_are_the_links_of_the_summary_in_its_order(book: ParsedBook) -> None:
    assert [(page.file, page.url) for page in book.pages] == [
        ("README.md", "/guide/index.html"),
        ("kites/README.md", "/guide/kites/index.html"),
        ("kites/steering.md", "/guide/kites/steering.html"),
        ("listing.md", "/guide/listing.html"),
    ]
    assert all(page.covered_words == page.visible_words for page in book.pages)


def test_what_is_not_read_is_reported(book: ParsedBook) -> None:
    assert [(p.file, p.fatal) for p in book.problems] == [
        ("listing.md", False),  # its include
        ("lost.md", True),
        ("../outside.txt", True),
    ]


def test_parts_and_chapters_become_module_and_chapter(book: ParsedBook) -> None:
    (steering,) = (p for p in book.passages if "Pull." in p.text)
    assert (steering.place.module, steering.place.chapter) == ("Flying", "Kites")
    assert steering.place.url == "/guide/kites/steering.html#left--right"
    assert "std::vec<T> stays." in steering.text


def test_equal_headings_are_numbered(book: ParsedBook) -> None:
    urls = [p.place.url for p in book.passages if p.place.file == "kites/README.md"]
    assert urls == [
        "/guide/kites/index.html#whats-a-kite",
        "/guide/kites/index.html#whats-a-kite-1",
    ]


def test_includes_are_expanded_only_inside_the_book(book: ParsedBook) -> None:
    text = "\n".join(p.text for p in book.passages if p.place.file == "listing.md")
    assert "```rust\n    fly(); # not a heading\n```" in text
    assert "```rust\nfn main() {\n```" in text
    assert "SECRET" not in text


def test_source_folder_is_accepted_as_book(folder: Path) -> None:
    book = read_book(folder / "src", SiteOptions(url="https://example.org"))
    assert book.pages[0].url == "https://example.org/guide/index.html"


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Hello, World!", "hello-world"), ("A_b-c d", "a_b-c-d"), ("C++ & Rust", "c--rust")],
)
def test_anchors_follow_mdbooks_rule(heading: str, anchor: str) -> None:
    assert mdbook_slug(heading) == anchor


@pytest.mark.parametrize("src", ["{0}/private", "../private", "a/../../private", "linked", "{0}"])
def test_the_sources_of_a_book_are_in_its_folder(tmp_path: Path, src: str) -> None:
    (tmp_path / "private").mkdir()
    for folder in (tmp_path, tmp_path / "private"):
        (folder / "SUMMARY.md").write_text("# Summary\n\n- [Diary](diary.md)\n")
        (folder / "diary.md").write_text("# Diary\n\nA secret.\n")
    book = tmp_path / "book"
    book.mkdir()
    (book / "book.toml").write_text(f"[book]\nsrc = '{src.format(tmp_path)}'\n")
    (book / "linked").symlink_to(tmp_path / "private")
    with pytest.raises(SourceError):
        read_book(book)
    (book / "a.md").write_text("# A\n\nText.\n")
    with pytest.raises(SourceError):
        read_book(book)


@pytest.mark.parametrize("root", ["", "src"])
def test_summary_that_cannot_be_read_is_named(tmp_path: Path, root: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "book.toml").touch()
    (tmp_path / "contents.md").write_text("# Summary\n")
    summary = tmp_path / "src" / "SUMMARY.md"
    summary.symlink_to(tmp_path / "contents.md")
    with pytest.raises(SourceError, match=r"SUMMARY\.md .* symbolic link"):
        read_book(tmp_path / root)
    summary.unlink()
    summary.write_bytes(b"\xff")
    with pytest.raises(SourceError, match=r"SUMMARY\.md .* not valid UTF-8"):
        read_book(tmp_path / root)
