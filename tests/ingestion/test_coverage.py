"""Coverage falls if a reader loses text."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bythebook.ingestion.pages import compare_words, split_page
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.source import SiteOptions, SourcePage
from bythebook.sources.files import Files
from bythebook.sources.markdown.source_words import source_words
from bythebook.sources.registry import find_source
from bythebook_formats.html.content import body_of, find_content
from bythebook_formats.html.source import PageContent
from bythebook_formats.html.tree import parse_html
from tests.sources.book_files import write_files

_SENTENCES = [f"Kite number{n} rises above the meadow{n} with a tail{n}." for n in range(12)]


def _markdown(folder: Path) -> Path:
    write_files(folder, {"a.md": "# Kites\n\n" + "\n\n".join(_SENTENCES) + "\n"})
    return folder


def _html(folder: Path) -> Path:
    body = "".join(f"<p>{sentence}</p>" for sentence in _SENTENCES)
    write_files(folder, {"index.html": f"<html><body><main>{body}</main></body></html>"})
    return folder


@pytest.mark.parametrize("make", [_markdown, _html])
def test_a_reader_that_drops_paragraphs_lowers_the_coverage(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path)
    files = Files(path)
    [page] = find_source(path, files).read(path, files, SiteOptions(), lambda _: None)
    whole = split_page(page)
    assert (whole.covered_words, whole.missing) == (whole.visible_words, ())
    lossy = replace(page.document, blocks=page.document.blocks[::2])
    part = split_page(replace(page, document=lossy))
    assert part.covered_words < 0.7 * part.visible_words
    assert "number1" in part.missing or "number0" in part.missing


def test_words_that_are_cut_in_another_way_are_not_missing() -> None:
    assert compare_words(["1", "st", "2x"], ["1st", "2", "x"]) == (3, ())
    assert compare_words(["one", "two", "one"], ["one", "three"]) == (1, ("two", "one"))


def test_all_words_of_nothing_are_no_coverage(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "<!-- nothing -->\n"})
    assert read_book(tmp_path).coverage is None


def test_lost_blocks_of_html_lower_the_coverage_and_removed_parts_are_named() -> None:
    """The words are taken from the element tree, not from the blocks."""
    page = """<body><nav>Home Start</nav><main><h1>Wind</h1><p>Gusts arrive early.</p>
    <p>Storms arrive later.</p><math><mi>velocity</mi><mo>=</mo><mn>42</mn></math>
    <footer>Edit this</footer></main></body>"""
    root = parse_html(page.encode())
    document = PageContent.of(body_of(root), find_content(root)).document("")
    whole = split_page(SourcePage(file="a", title="Wind", url="/a", document=document))
    assert whole.missing == ()
    assert {each.text for each in whole.left_out} == {"Home Start", "Edit this"}
    lost = replace(document, blocks=document.blocks[:2])
    part = split_page(SourcePage(file="a", title="Wind", url="/a", document=lost))
    assert part.missing == ("Storms", "arrive", "later", "velocity", "42")


def test_letters_of_a_passage_stand_for_one_word_only() -> None:
    assert compare_words(["exam", "ple"], ["example"]) == (2, ())
    assert compare_words(["exam", "ple", "ple"], ["example"]) == (2, ("ple",))
    assert compare_words(["banana"], ["a"]) == (0, ("banana",))


def test_a_file_that_cannot_be_read_lowers_the_coverage(tmp_path: Path) -> None:
    path = _markdown(tmp_path)
    assert read_book(path).coverage == 1.0
    write_files(path, {"b.docx": "kites", "notes.txt": "kites"})
    book = read_book(path)
    assert book.coverage == 0.5
    assert {(file.file, file.lost) for file in book.unread.files} == {
        ("b.docx", True),
        ("notes.txt", False),
    }


@pytest.mark.parametrize(
    "source",
    [
        "<table>\n<tr>\n<td>kestrel</td>\n</tr>\n</table>\n",
        "```{note}\nkestrel\n```\n",
        ":::{prf:theorem} Title\nkestrel\n:::\n",
    ],
)
def test_words_in_html_and_in_directives_are_counted(source: str) -> None:
    assert "kestrel" in source_words(source.split("\n"))


def test_what_is_left_out_is_reported_by_reason(tmp_path: Path) -> None:
    page = "<html><body><nav>Home Start</nav><main><h1>Wind</h1><p>Gusts.</p></main></body></html>"
    write_files(tmp_path, {"index.html": page, "b.html": page.replace("Gusts", "Storms")})
    [total] = read_book(tmp_path).left_out
    assert (total.words, total.pages, total.example) == (4, 2, "Home Start")
