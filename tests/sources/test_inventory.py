"""The format fits the folder, and what was not read is named."""

from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import SiteOptions, read_book
from bythebook.interfaces.blocks import Code
from bythebook.sources.inventory import is_template
from bythebook.sources.markdown.mdx import MdxSource, parse
from tests.sources.book_files import write_files

_TEMPLATES = {
    "jekyll": "---\nlayout: default\n---\n<h1>All</h1>\n",
    "liquid": "<html><head><title>{{ site.title }}</title></head><body>All</body></html>",
    "hugo": '{{ define "main" }}<h1>All</h1>{{ end }}',
    "jinja": "{% extends 'base.html' %}<p>All</p>",
    "plain": "<html><head><title>All</title></head><body><p>All pages.</p></body></html>",
}


@pytest.mark.parametrize("name", _TEMPLATES)
def test_one_page_of_html_makes_no_built_site(tmp_path: Path, name: str) -> None:
    pages = {f"chapters/{number}.md": f"# C{number}\n\nText {number}.\n" for number in range(5)}
    write_files(tmp_path, {"index.html": _TEMPLATES[name], **pages})
    for book_format in (None, "mixed"):
        book = read_book(tmp_path, SiteOptions(format=book_format))
        assert {page.file for page in book.pages} >= set(pages)
        unread = [file.file for file in book.unread.files]
        assert unread == ([] if name == "plain" else ["index.html"])


def test_a_page_about_templates_is_no_template() -> None:
    page = b"<html><head><title>Jinja</title></head><body><p>{{ name }} {% if %}</p></body></html>"
    assert not is_template(page)
    assert not is_template(b"<p>---\n{{ a }}</p>")


def test_a_built_site_may_have_the_sources_beside_its_pages(tmp_path: Path) -> None:
    page = "<html><body><main><h1>A</h1><p>Text of a page.</p></main></body></html>"
    names = ("index", "a", "b/index")
    write_files(tmp_path, {f"{name}.html": page.replace("A", name) for name in names})
    write_files(tmp_path, {"index.md": "# I", "a.md": "# A", "b.md": "# B", "README.md": "# R"})
    assert {page.file for page in read_book(tmp_path).pages} == {f"{name}.html" for name in names}


def test_what_is_not_read_is_named_with_its_kind(tmp_path: Path) -> None:
    names = ("paper.tex", "notes.docx", "old.rst", "figure.png", "node_modules/a/b.tex", "x.py")
    write_files(tmp_path, dict.fromkeys(names, "text"))
    write_files(tmp_path, {f"{number}.md": f"# P{number}\n\nText.\n" for number in range(4)})
    book = read_book(tmp_path, SiteOptions(format="markdown"))
    unread = {file.file: (file.kind, file.reason) for file in book.unread.files}
    assert unread.keys() == {"paper.tex", "notes.docx", "old.rst"}
    assert unread["paper.tex"] == (".tex", ".tex files are not read")
    assert book.unread.images == 1


def test_a_detected_format_may_not_leave_out_most_of_the_book(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number}.tex": "Text." for number in range(5)})
    write_files(tmp_path, {"a.md": "# A\n\nText.\n", "b.html": "<p>Text.</p>"})
    with pytest.raises(SourceError, match=r"loses 5 of 7 .*5 \.tex.*--format.*markdown \(1 files"):
        read_book(tmp_path)
    chosen = read_book(tmp_path, SiteOptions(format="mixed"))
    assert len(chosen.pages) == 2
    assert len(read_book(tmp_path, SiteOptions(exclude=("*.tex",))).pages) == 2


def test_files_are_excluded_before_the_format_is_detected(tmp_path: Path) -> None:
    page = "<html><body><main><p>Text of a page.</p></main></body></html>"
    write_files(tmp_path, {"index.html": page, "b.html": page, "notes.md": "# N\n\nText.\n"})
    assert {page.file for page in read_book(tmp_path).pages} == {"index.html", "b.html"}
    book = read_book(tmp_path, SiteOptions(exclude=("*.html",)))
    assert [page.file for page in book.pages] == ["notes.md"]
    assert not book.unread.files


@pytest.mark.parametrize("name", ["lab.Rmd", "lab.qmd", "lab.markdown"])
def test_documents_with_chunks_are_markdown(tmp_path: Path, name: str) -> None:
    text = "---\ntitle: Lab\n---\n\nA kettle.\n\n```{r plot, echo=FALSE}\nplot(x)\n```\n"
    write_files(tmp_path, {name: text})
    for path in (tmp_path, tmp_path / name):
        [page] = read_book(path).pages
        assert (page.file, page.title) == (name, "Lab")
        assert "plot(x)" in page.passages[0].text


@pytest.mark.parametrize(
    ("info", "language"),
    [("{r}", "r"), ("{r, echo=FALSE}", "r"), ("{.python .n}", "python"), ("{1,3}", "")],
)
def test_the_language_of_a_chunk(info: str, language: str) -> None:
    [block] = parse(MdxSource.of(f"```{info}\nx\n```\n")).blocks
    assert isinstance(block, Code)
    assert block.language == language
