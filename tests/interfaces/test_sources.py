"""Conformance suite of the Source interface, on every built-in format and an installed one."""

import importlib
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.source import Problem, SiteOptions, Source, SourcePage
from bythebook.sources.documents import headings_of, plain_text
from bythebook.sources.files import Files
from bythebook.sources.markdown.folder import MarkdownFolder
from bythebook.sources.registry import GROUP, find_source, load_source, registered_sources
from tests.support.epub_files import document, write_epub
from tests.support.pdf_writer import PdfWriter

_PAGES = {
    "b.md": "---\nsidebar_position: 1\n---\n\n# Kites\n\n## Lift\n\nA kite flies.\n\n- up\n",
    "a.md": "# Wind\n\n## Lift\n\nIt blows.\n\n## Lift\n\nAgain.\n\n| m |\n|---|\n| 1 |\n",
    "bad.md": b"# Not UTF-8\n\n\xff\n",
}
_CONFIG = "module.exports = {url: 'https://kites.example', baseUrl: '/'}"
_SUMMARY = "# Summary\n\n- [Kites](b.md)\n- [Wind](a.md)\n- [Bad](bad.md)\n"

# A format of another package: one file, a zip archive of text pages.
_ZIP_SOURCE = """
import io
import zipfile
from pathlib import PurePosixPath

from bythebook.interfaces.blocks import Heading, Paragraph
from bythebook.interfaces.source import Problem, SourcePage
from bythebook.sources.documents import document_of


class ZipSource:
    def detects(self, path, files):
        return path.suffix == ".zipbook" and files.has_file(path)

    def read(self, path, files, options, report):
        content = files.read_bytes(path.parent, PurePosixPath(path.name))
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                try:
                    title, _, text = archive.read(name).decode().partition("\\n")
                except UnicodeDecodeError:
                    report(Problem(name, None, "not valid UTF-8", fatal=True))
                    continue
                heading = Heading(2, "Lift", "lift", (0, 0))
                blocks = [Heading(1, title, None, (0, 0)), heading, Paragraph(text, (0, len(text)))]
                yield SourcePage(name, title, f"/{name}", document_of(blocks))
"""


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    source: Source
    path: Path  # of a book with the pages Kites and Wind, and one that is not UTF-8

    def read(self) -> tuple[list[SourcePage], list[Problem], Files]:
        files, problems = Files(Path("/")), list[Problem]()
        pages = self.source.read(self.path, files, SiteOptions(), problems.append)
        return list(pages), problems, files


def _write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def _write_docusaurus(folder: Path) -> Path:
    pages = {f"docs/{name}": text for name, text in _PAGES.items()}
    return _write(folder, {"docusaurus.config.js": _CONFIG, **pages})


def _write_mdbook(folder: Path) -> Path:
    pages = {f"src/{name}": text for name, text in _PAGES.items()}
    return _write(folder, {"book.toml": "[book]\n", "src/SUMMARY.md": _SUMMARY, **pages})


def _write_zip(folder: Path) -> Path:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "book.zipbook", "w") as archive:
        archive.writestr("kites", "Kites\nA kite flies.")
        archive.writestr("wind", "Wind\nIt blows.")
        archive.writestr("bad", b"Bad\n\xff")
    return folder / "book.zipbook"


def _write_pdf(folder: Path) -> Path:
    """Write the two pages as chapters, and a scanned page."""
    pdf = PdfWriter("Kites")
    for title, sections in (("Kites", ["A kite flies."]), ("Wind", ["It blows.", "Again."])):
        page = pdf.page().text(72, 740, title, 20)
        for number, text in enumerate(sections):
            page.text(72, 680 - 80 * number, "Lift", 14).text(72, 660 - 80 * number, text)
    pdf.page().image()
    folder.mkdir(parents=True)
    (folder / "book.pdf").write_bytes(pdf.bytes())
    return folder / "book.pdf"


_BODY = '<h1>{title}</h1><h2 id="lift">Lift</h2><p>{text}</p>'
_KITES = _BODY.format(title="Kites", text="A kite flies.")
_WIND = _BODY.format(title="Wind", text="It blows.")
_HTML = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{next}
</head><body><nav><a href="kites.html">Kites</a><a href="wind.html">Wind</a></nav>
<main>{body}</main></body></html>"""
_HTML_PAGES: dict[str, str | bytes] = {
    "kites.html": _HTML.format(title="Kites", next='<link rel="next" href="a.html">', body=_KITES),
    "a.html": _HTML.format(title="Wind", next="", body=_WIND),
    "bad.html": b"<p>Not UTF-8 \xff</p>",
}


def _write_epub(folder: Path) -> Path:
    folder.mkdir(parents=True)
    pages = {"b.xhtml": document(_KITES), "a.xhtml": document(_WIND), "bad.xhtml": b"<p>\xff</p>"}
    return write_epub(folder / "book.epub", pages)


def _write_mixed(folder: Path) -> Path:
    pages = {"01.html": _HTML_PAGES["kites.html"], "02.md": "# Wind\n\n## Lift\n\nIt blows.\n"}
    return _write(folder, {**pages, "bad.md": _PAGES["bad.md"]})


def _write_notebook(folder: Path) -> Path:
    text = "# Kites\n\n## Lift\n\nA kite flies. It is in the air with the wind."
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": text}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return _write(folder, {"book.ipynb": json.dumps(notebook)}) / "book.ipynb"


def _write_jupyter_book(folder: Path) -> Path:
    toc = "format: jb-book\nroot: b\nchapters:\n- file: a\n- file: bad\n"
    return _write(folder, {"_toc.yml": toc, "_config.yml": "title: Kites\n", **_PAGES})


_ONE_PAGE = ("notebook",)  # formats whose book is the page Kites alone
_BOOKS: dict[str, Callable[[Path], Path]] = {
    "jupyter-book": _write_jupyter_book,
    "notebook": _write_notebook,
    "epub": _write_epub,
    "html": lambda folder: _write(folder, _HTML_PAGES),
    "mixed": _write_mixed,
    "pdf": _write_pdf,
    "docusaurus": _write_docusaurus,
    "mdbook": _write_mdbook,
    "zipbook": _write_zip,
    "markdown": lambda folder: _write(folder, dict(_PAGES)),
}


# What is reported of the page that cannot be read, and whether it is a file of its own.
_PROBLEMS = {"pdf": ("page 3: scanned, no text layer; run OCR, e.g. ocrmypdf", False)}
_ANCHORS = ("#lift", "#page=1")


def _install(folder: Path, name: str, value: str, code: str) -> None:
    """Write a package with an entry point as ``pip install`` does."""
    info = folder / "zip_source_package-1.2.dist-info"
    metadata = "Metadata-Version: 2.1\nName: zip_source-package\nVersion: 1.2\n"
    _write(info, {"METADATA": metadata, "entry_points.txt": f"[{GROUP}]\n{name} = {value}\n"})
    _write(folder, {"zip_source.py": code})
    importlib.invalidate_caches()


@pytest.fixture
def site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "zip_source", raising=False)
    return folder


@pytest.fixture(params=_BOOKS)
def sample(request: pytest.FixtureRequest, tmp_path: Path, site_packages: Path) -> Sample:
    name: str = request.param
    _install(site_packages, "zipbook", "zip_source:ZipSource", _ZIP_SOURCE)
    return Sample(name, load_source(registered_sources()[name]), _BOOKS[name](tmp_path / "book"))


def test_every_registered_source_is_tested_and_the_fallback_comes_last(site_packages: Path) -> None:
    _install(site_packages, "zipbook", "zip_source:ZipSource", _ZIP_SOURCE)
    assert set(registered_sources()) == set(_BOOKS)
    assert list(registered_sources())[-1] == "markdown"


def test_a_source_detects_its_format_and_only_that(sample: Sample, tmp_path: Path) -> None:
    assert sample.source.detects(sample.path, Files(Path("/")))
    assert type(find_source(sample.path, Files(Path("/")))) is type(sample.source)
    assert not sample.source.detects(tmp_path / "missing", Files(Path("/")))
    for name, write in _BOOKS.items():
        other = write(tmp_path / "other" / name)
        if sample.name not in ("mixed", "markdown"):  # general formats, tried after the others
            assert sample.source.detects(other, Files(Path("/"))) == (name == sample.name)
        found = find_source(other, Files(Path("/")))
        assert type(found) is type(load_source(registered_sources()[name]))


def test_pages_come_in_reading_order_with_all_fields(sample: Sample) -> None:
    pages, _, _ = sample.read()
    titles = ["Kites"] if sample.name in _ONE_PAGE else ["Kites", "Wind"]
    assert [page.title for page in pages] == titles
    assert len({page.file for page in pages}) == len({page.url for page in pages}) == len(pages)
    for page in pages:
        assert not Path(page.file).is_absolute()
        assert "#" not in page.url
        assert plain_text(page.document.blocks)
        assert page.document.headings == tuple(headings_of(page.document.blocks))
        anchors = [heading.anchor for heading in page.document.headings if heading.anchor]
        ids = [anchor for anchor in anchors if "=" not in anchor]  # positions may be shared
        assert anchors
        assert len(set(ids)) == len(ids)


def test_an_unreadable_page_is_reported_and_the_others_are_read(sample: Sample) -> None:
    if sample.name in _ONE_PAGE:
        sample.path.write_bytes(b"bad \xff")
        sample = replace(sample, path=sample.path.rename(sample.path.with_stem("bad")))
    _, problems, _ = sample.read()
    reason, fatal = _PROBLEMS.get(sample.name, ("not valid UTF-8", True))
    assert [(problem.reason, problem.fatal) for problem in problems] == [(reason, fatal)]
    assert ("bad" in problems[0].file) == fatal


def test_pages_do_not_depend_on_where_the_book_is(sample: Sample, tmp_path: Path) -> None:
    before, _, _ = sample.read()
    moved = tmp_path / "elsewhere" / sample.path.name
    if sample.path.is_dir():
        shutil.copytree(sample.path, moved)
    else:
        moved.parent.mkdir()
        shutil.copy(sample.path, moved)
    assert Sample(sample.name, sample.source, moved).read()[0] == before


def test_every_file_that_is_read_is_recorded(sample: Sample) -> None:
    _, _, files = sample.read()
    assert all(probe.shows() == result for probe, result in files.seen.items())
    for file in sample.path.rglob("*") if sample.path.is_dir() else [sample.path]:
        if file.is_file():
            content = file.read_bytes()
            file.write_bytes(content + b" ")
            assert any(probe.shows() != result for probe, result in files.seen.items()), file
            file.write_bytes(content)


def test_no_visible_word_is_lost_between_a_source_and_the_passages(sample: Sample) -> None:
    book = read_book(sample.path)
    # Of a scanned page, its number stands for the words.
    assert {word for page in book.pages for word in page.missing} <= {"(page 3)"}
    assert (book.coverage == 1.0) is not bool(book.problems)
    assert "A kite flies." in book.passages[0].text
    assert book.passages[0].place.url.lower().endswith(_ANCHORS)
    assert {passage.metadata.language for passage in book.passages} == {"en"}


def test_a_source_can_be_chosen_by_name(tmp_path: Path) -> None:
    folder = _write_docusaurus(tmp_path)
    assert isinstance(find_source(folder, Files(Path("/")), "markdown"), MarkdownFolder)
    with pytest.raises(SourceError, match=r"'docx'.*Known are: .*docusaurus, .*markdown"):
        read_book(folder, SiteOptions(format="docx"))


@pytest.mark.parametrize("name", ["docusaurus", "mdbook", "jupyter-book", "notebook"])
def test_a_source_chosen_for_a_folder_of_another_format_says_what_is_missing(
    name: str, tmp_path: Path
) -> None:
    folder = _write(tmp_path, dict(_PAGES))
    with pytest.raises(SourceError, match="There is no") as caught:
        read_book(folder, SiteOptions(format=name))
    assert caught.value.hint


def test_a_file_that_no_source_reads_is_an_error_with_a_hint(tmp_path: Path) -> None:
    file = _write(tmp_path, {"book.xyz": "text"}) / "book.xyz"
    with pytest.raises(SourceError, match=r"No installed format reads 'book.xyz'") as caught:
        read_book(file)
    assert caught.value.hint


def test_an_installed_source_is_imported_only_when_it_is_asked(
    site_packages: Path, tmp_path: Path
) -> None:
    _install(site_packages, "zipbook", "zip_source:ZipSource", _ZIP_SOURCE)
    read_book(_write_docusaurus(tmp_path / "site"))
    assert "zip_source" not in sys.modules
    read_book(_write_zip(tmp_path / "zip"))
    assert "zip_source" in sys.modules


def test_an_installed_source_cannot_replace_a_built_in_one(site_packages: Path) -> None:
    before = registered_sources()
    _install(site_packages, "markdown", "zip_source:ZipSource", _ZIP_SOURCE)
    assert registered_sources() == before


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("zip_source:ZipSource", "import not_installed_anywhere"),
        ("zip_source:Missing", _ZIP_SOURCE),
        ("zip_source:ZipSource", "def broken(:"),
        ("zip_source:NAME", "NAME = 'text'"),
        ("zip_source:Empty", "class Empty: pass"),
    ],
)
def test_a_broken_installed_source_is_named_with_its_package(
    value: str, code: str, site_packages: Path, tmp_path: Path
) -> None:
    _install(site_packages, "zipbook", value, code)
    read_book(_write_mdbook(tmp_path / "mdbook"))  # a built-in format does not need it
    with pytest.raises(
        SourceError, match=r"'zipbook' of the package 'zip_source-package'"
    ) as caught:
        read_book(_write(tmp_path / "plain", dict(_PAGES)))
    assert caught.value.hint == "Update or uninstall zip_source-package."
