"""Books of several sources: folders of several formats, listed parts, unbuilt sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import SiteOptions, read_book
from bythebook.interfaces.source import SourceEntry
from tests.support.epub_files import document, write_epub


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _write(
        tmp_path,
        {
            "01-intro.md": "# Intro\n\n## Start\n\nIt begins.\n",
            "02-web/page.html": "<main><h1>Web</h1><h2 id='w'>Web part</h2><p>Text.</p></main>",
            "04-end.md": "# End\n\nIt ends.\n",
        },
    )
    page = document('<h1>Paper</h1><h2 id="p">Paper part</h2><p>Text.</p>')
    write_epub(tmp_path / "03-paper.epub", {"a.xhtml": page})
    return tmp_path


def test_a_folder_of_several_formats_is_one_book_in_path_order(folder: Path) -> None:
    book = read_book(folder)
    assert [page.title for page in book.pages] == ["Intro", "Web", "Paper", "End"]
    assert [page.file for page in book.pages] == [
        "01-intro.md",
        "02-web/page.html",
        "03-paper.epub/OEBPS/a.xhtml",
        "04-end.md",
    ]
    urls = [passage.place.url for passage in book.passages]
    assert urls == [
        "/01-intro#start",
        "/02-web/page.html#w",
        "/03-paper.epub/OEBPS/a.xhtml#p",
        "/04-end",
    ]
    assert book.problems == ()
    assert book.coverage == 1.0


def test_parts_can_be_listed_with_titles_and_order(folder: Path) -> None:
    parts = (SourceEntry("04-end.md", "Last things", "markdown"), SourceEntry("02-web", "The web"))
    with pytest.raises(SourceError, match="no folder"):
        read_book(folder, SiteOptions(sources=(SourceEntry("missing"),)))
    with pytest.raises(SourceError, match="not below"):
        read_book(folder, SiteOptions(sources=(SourceEntry("../x"),)))
    book = read_book(folder, SiteOptions(sources=(*parts, SourceEntry("03-paper.epub"))))
    assert [(page.title, page.passages[0].place.module) for page in book.pages] == [
        ("End", "Last things"),
        ("Web", "The web"),
        ("Paper", "A book"),
    ]
    assert [page.file for page in book.pages] == [
        "04-end.md",
        "02-web/page.html",
        "03-paper.epub/OEBPS/a.xhtml",
    ]


def test_a_single_markdown_file_is_a_book(folder: Path) -> None:
    book = read_book(folder / "04-end.md")
    assert [page.file for page in book.pages] == ["04-end.md"]


def test_a_file_is_no_mixed_folder(folder: Path) -> None:
    with pytest.raises(SourceError, match="is not a folder"):
        read_book(folder / "03-paper.epub", SiteOptions(format="mixed"))


@pytest.mark.parametrize(
    ("name", "command"), [("a.rst", "sphinx-build"), ("a.adoc", "asciidoctor")]
)
def test_sources_that_must_be_built_first_name_the_command(
    name: str, command: str, tmp_path: Path
) -> None:
    only = _write(tmp_path / "only", {name: "Title\n=====\n"})
    for path in (only, only / name):
        with pytest.raises(SourceError) as caught:
            read_book(path)
        assert command in str(caught.value)
        assert "bythebook ingest" in str(caught.value)
    beside = _write(tmp_path / "beside", {name: "Title\n=====\n", "b.md": "# B\n\nText.\n"})
    book = read_book(beside)
    assert [page.title for page in book.pages] == ["B"]
    (problem,) = book.problems
    assert problem.fatal
    assert command in problem.reason
