"""EPUB 2 and 3: reading order, outline, notes, links and hostile archives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.support.epub_files import document, write_epub

from bythebook.ingestion.read_book import ParsedBook, SiteOptions, read_book
from bythebook_formats.html.tree import parse_xml

_PARTS = {
    "cover.xhtml": document('<div><svg><image href="c.png"/></svg></div>', title="Cover"),
    "text/one.xhtml": document(
        '<section epub:type="chapter" id="c1"><h1>One</h1><p>First<a epub:type="noteref" '
        'href="notes.xhtml#n1">1</a> page<span epub:type="pagebreak" title="2">2</span>.</p>'
        '<h2 id="s1">Lift</h2><pre><code class="language-c">a;\n  b;</code></pre>'
        "<table><tr><th>a</th></tr><tr><td>1</td></tr></table><math alttext='x^2'><mi>x</mi></math>"
        '<p><img src="k.png" alt="A kite"/> and &eacute;.</p></section>'
    ),
    "text/two.xhtml": document(
        '<p id="t2" class="title">Two</p><p>Second.</p><p id="s2">Drag</p><p>Slow.</p>'
    ),
    "text/notes.xhtml": document(
        '<h1>Notes</h1><aside epub:type="footnote" id="n1"><p>A note. '
        '<a epub:type="backlink" href="one.xhtml">back</a></p></aside>'
    ),
}
_OUTLINE = [
    (
        "Part I",
        "text/one.xhtml",
        [("One", "text/one.xhtml#c1", [("Lift", "text/one.xhtml#s1", [])])],
    ),
    ("Part II", "", [("Two", "text/two.xhtml#t2", [("Drag", "text/two.xhtml#s2", [])])]),
    ("Notes", "text/notes.xhtml", []),
]


@pytest.fixture(params=["nav", "ncx"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> ParsedBook:
    path = write_epub(
        tmp_path / "kites.epub",
        _PARTS,
        outline=_OUTLINE,  # type: ignore[arg-type]
        ncx=request.param == "ncx",
    )
    return read_book(path)


def test_pages_follow_the_spine_with_the_outlines_parts(book: ParsedBook) -> None:
    places = [page.passages[0].place for page in book.pages]
    assert [(place.title, place.module) for place in places] == [
        ("One", "A book"),
        ("Two", "Part II"),
        ("Notes", "A book"),
    ]
    assert book.coverage == 1.0
    assert book.problems == ()
    assert {passage.metadata.language for passage in book.passages} == {"en"}


def test_links_are_href_and_id_and_resolve(book: ParsedBook, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kites.epub") as archive:
        for passage in book.passages:
            path, _, anchor = unquote(passage.place.url).partition("#")
            tree = parse_xml(archive.read(path.removeprefix("/kites.epub/")))
            assert not anchor or tree.find(f".//*[@id='{anchor}']") is not None
    urls = {passage.place.url for passage in book.passages}
    assert "/kites.epub/OEBPS/text/one.xhtml#s1" in urls
    assert "/kites.epub/OEBPS/text/two.xhtml#s2" in urls  # a paragraph that the outline names


def test_content_is_kept_and_marks_are_left_out(book: ParsedBook) -> None:
    text = "\n".join(passage.text for passage in book.passages)
    assert "First page." in text
    assert "```c\na;\n  b;\n```" in text
    assert "| a |" in text
    assert "x^2" in text
    assert "A kite and é." in text
    assert "A note." in text
    assert "back" not in text


@pytest.mark.parametrize("flaw", ["&undefined;", "<br>", "</i>", "a & b"])
def test_a_document_that_is_not_xml_is_read_as_a_browser_does(flaw: str, tmp_path: Path) -> None:
    path = write_epub(tmp_path / "b.epub", {"a.xhtml": document(f"<h1>T</h1><p>Text {flaw}.</p>")})
    book = read_book(path)
    assert "Text" in book.passages[0].text
    assert all(not problem.fatal for problem in book.problems)


def test_protected_books_are_refused_but_not_their_fonts(tmp_path: Path) -> None:
    def encryption(algorithm: str) -> dict[str, str | bytes]:
        return {
            "META-INF/encryption.xml": '<encryption xmlns="x"><EncryptedData xmlns="y">'
            f'<EncryptionMethod Algorithm="{algorithm}"/></EncryptedData></encryption>'
        }

    parts = {"a.xhtml": document("<h1>T</h1><p>Text.</p>")}
    fonts = write_epub(
        tmp_path / "fonts.epub", parts, extra=encryption("http://www.idpf.org/2008/embedding")
    )
    assert read_book(fonts).problems == ()
    locked = write_epub(
        tmp_path / "locked.epub",
        parts,
        extra=encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc"),
    )
    (problem,) = read_book(locked).problems
    assert problem.fatal
    assert "digital rights management" in problem.reason


def test_links_out_of_the_archive_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.xhtml").write_text(document("<p>SECRET</p>"))
    names = ["../../secret.xhtml", "/etc/passwd", "http://x.example/a", "..\\secret.xhtml"]
    parts = {"a.xhtml": document("<h1>T</h1><p>Text.</p>")}
    path = write_epub(tmp_path / "b.epub", parts)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    items = "".join(
        f'<item id="x{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(names)
    )
    refs = "".join(f'<itemref idref="x{n}"/>' for n in range(len(names)))
    package = files["OEBPS/content.opf"].decode()
    package = package.replace("</manifest>", f"{items}</manifest>").replace(
        "</spine>", f"{refs}</spine>"
    )
    with zipfile.ZipFile(tmp_path / "c.epub", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, package if name.endswith(".opf") else content)
    book = read_book(tmp_path / "c.epub")
    assert "SECRET" not in repr(book)
    assert [page.title for page in book.pages] == ["T"]


def test_bombs_are_a_problem_of_that_document(tmp_path: Path) -> None:
    bomb = document("<p>" + "word " * 3_000_000 + "</p>")
    deep = document("<div>" * 50_000 + "x" + "</div>" * 50_000)
    good = document("<h1>Good</h1><p>Text.</p>")
    path = write_epub(
        tmp_path / "b.epub", {"bomb.xhtml": bomb, "deep.xhtml": deep, "good.xhtml": good}
    )
    book = read_book(path)
    assert [page.title for page in book.pages] == ["Good"]
    reasons = {problem.file.rpartition("/")[2]: problem.reason for problem in book.problems}
    assert reasons == {
        "bomb.xhtml": "unpacks to more than is allowed",
        "deep.xhtml": "nested too deeply",
    }


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"<html></html>", b"PK\x05\x06" + b"\0" * 18]
)
def test_a_file_that_is_no_epub_is_a_problem(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.epub").write_bytes(content)
    (problem,) = read_book(tmp_path / "b.epub").problems
    assert problem.fatal
    assert problem.file == "b.epub"


def test_a_site_url_comes_before_the_path(tmp_path: Path) -> None:
    path = write_epub(tmp_path / "a b.epub", {"a.xhtml": document("<h1>T</h1><p>Text.</p>")})
    book = read_book(path, SiteOptions(url="https://x.example", base_url="/books/"))
    assert book.pages[0].url == "https://x.example/books/a%20b.epub/OEBPS/a.xhtml"


_PROSE = f"<p>{'The wind lifts the kite. ' * 40}</p>"


@pytest.mark.parametrize(
    ("body", "label", "written", "title"),
    [
        ("<hgroup><h2>V</h2><p>The Wind</p></hgroup>", "V", "V", "V: The Wind"),
        ("<hgroup><h2>V</h2><h3>The Wind</h3></hgroup>", "V: The Wind", "", "V: The Wind"),
        ("<h2>V</h2>", "V: The Wind", "", "V: The Wind"),
        ("<h2>5</h2>", "5", "The Wind", "5: The Wind"),
        ("<h2>Chapter 5</h2>", "The Wind", "", "Chapter 5: The Wind"),
        ("", "", "The Wind", "The Wind"),
        ("<h2>V</h2>", "V", "V", "V"),
        ("<hgroup><h2>Kites</h2><p>And the wind</p></hgroup>", "Kites", "", "Kites"),
    ],
)
def test_titles_of_chapters_are_more_than_their_numbers(
    body: str, label: str, written: str, title: str, tmp_path: Path
) -> None:
    parts = {"a.xhtml": document(body + _PROSE, title=written)}
    outline = [(label, "a.xhtml", [])] if label else []
    book = read_book(write_epub(tmp_path / "b.epub", parts, outline=outline))  # type: ignore[arg-type]
    assert {(passage.place.title, passage.place.section) for passage in book.passages} == {
        (title, ())
    }
    assert book.coverage == 1.0


def test_sections_in_files_of_their_own_keep_their_chapter(tmp_path: Path) -> None:
    parts = {
        "p.xhtml": document("<h1>Part I</h1>"),
        "c.xhtml": document(f"<h1>Wind</h1>{_PROSE}"),
        "s.xhtml": document(f"<h1>Gusts</h1>{_PROSE}"),
    }
    chapter = ("Wind", "c.xhtml", [("Gusts", "s.xhtml", [])])
    for number, outline in enumerate(([chapter], [("Part I", "p.xhtml", [chapter])])):
        path = write_epub(tmp_path / f"{number}.epub", parts, outline=outline)  # type: ignore[arg-type]
        place = read_book(path).pages[-1].passages[0].place
        assert (place.title, place.chapter) == ("Gusts", "Wind")
        assert place.module == ("Part I" if number else "A book")
