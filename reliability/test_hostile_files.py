"""Any file is read or is a reported problem of that file, in bounded time and memory."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.sources.test_hostile_input import PLACE, READINGS
from tests.support.clock import seconds_of
from tests.support.epub_files import document, write_epub
from tests.support.pdf_writer import Entry, PdfWriter, assemble

from bythebook.ingestion.passages import passages_of
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import MAX_BYTES, Files
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook.types import Metadata
from bythebook_formats.pdf.process import WorkerLimits
from bythebook_formats.pdf.source import PdfSource
from reliability.mutations import FORMATS, faults
from reliability.rows import FULL, Row

_MUTATED = (
    "pages or a typed problem of that file; 0 exceptions, lost words, crashes and hangs; a few "
    "seconds of a processor at most for each"
)


@pytest.mark.parametrize(
    "forms",
    [
        pytest.param(forms, marks=pytest.mark.row(row_id, title, _MUTATED), id="-".join(forms))
        for row_id, title, *forms in (
            ("R23", "Mutate Markdown and MDX pages", "markdown"),
            ("R27", "Mutate HTML pages and EPUB files", "html", "epub"),
            ("R29", "Mutate notebooks: bytes, JSON values, nesting, encodings", "notebook"),
            ("R30", "Mutate PDF files", "pdf"),
        )
    ],
)
def test_mutated_files(row: Row, forms: list[str]) -> None:
    files = row.count(300, 20_000)
    found = [fault for form in forms for fault in faults(form, files)]
    row.record(
        f"{files:,} mutated files of {' and of '.join(forms)}, at most "
        f"{max(FORMATS[form].seconds for form in forms)} s each",
        "; ".join(found) or "0 exceptions, lost words, crashes and hangs",
        passed=not found,
    )


_HOSTILE = [
    "<", "{", "<a ", '<a b="', "<a b={", "$a ", "$$\n", ":::note\n", ">", "> ", "- ", "- a\n", "[",
    "![", "[a](", "*a **b ", "_a_ __", "`a ``b ", "<!-- ", "{/* ", "| a ", "|a|b|\n|-|-|\n",
    "<div>", "<div>\n", "</div>\n", "<details>\n", "<x>", "<X>\n", "```\n", "# a {#",
    "export const a = {\n",
    "{'\\'", "[^1]", "[^1]: a\n", "Mr. A. B. ", "字。", "[a]: b\n", "a\n=\n", "> a\nb\n", "<a\n",
    "<Tabs>\n<TabItem value='a'>\n", "~~a ", "{'a'}", "{`", "`${", "/*", "\u202e", "<tr><td>", "\\",
    "&#", " ", "\t", "\n", "import a from 'b'\n",
]  # fmt: skip
_SMALL, _LARGE = (6_000, 60_000) if FULL else (3_000, 30_000)  # signs


@pytest.mark.row(
    "R33",
    "Repeat what is slow to parse",
    "10 times the text in ≤ 12 times the time, ≤ 50 ms/KB",
)
def test_patterns_take_linear_time(row: Row) -> None:
    each = row.count(1, len(READINGS))
    tried = [
        (pattern, READINGS[(number + turn) % len(READINGS)])
        for number, pattern in enumerate(_HOSTILE)
        for turn in range(each)
    ]
    gc.freeze()  # else each measurement would look through what other tests have left
    steep = [f"{pattern!r} {way}" for pattern, way in tried if not _grows_evenly(pattern, way)]
    gc.unfreeze()
    row.record(
        f"{len(_HOSTILE)} hostile patterns, each in {each} of {len(READINGS)} readings, "
        f"{_SMALL:,} and {_LARGE:,} signs long",
        "; ".join(steep) or "0 grow faster than their text",
        passed=not steep,
    )


def _grows_evenly(pattern: str, reading: ParseOptions) -> bool:
    """Measure the best of four runs."""
    for _ in range(4):
        small, large = (_seconds(pattern, size, reading) for size in (_SMALL, _LARGE))
        if large <= max(12 * small, 0.4) and large < 0.05 * _LARGE / 1024:
            return True
    return False


def _seconds(pattern: str, size: int, reading: ParseOptions) -> float:
    work = partial(parse, MdxSource.of(pattern * (size // len(pattern))), reading)
    return seconds_of(lambda: passages_of(work(), PLACE, Metadata()), runs=1)


_BOOK_S, _MOST_MB = 10.0, 400
_READ = """
import json, re, sys, time
from pathlib import Path
from bythebook.ingestion.read_book import read_book
book = read_book(Path(sys.argv[1]))
status = Path("/proc/self/status").read_text()  # rusage would count the parent's memory
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
words = sum(page.visible_words for page in book.pages)
figures = [time.process_time(), peak, len(book.pages), words, book.coverage]
print(json.dumps(figures))
"""
_WORDS = [
    "the",
    "kite",
    "flies",
    "in",
    "a",
    "steady",
    "wind",
    "above",
    "the",
    "beach",
    "while",
    "the",
    "line",
    "pulls",
    "on",
    "it",
]


def _section(number: int) -> str:
    text = " ".join(_WORDS[(number * 7 + index) % len(_WORDS)] for index in range(60))
    return (
        f'<section id="s{number}"><h2>Section {number}<a class="headerlink" href="#s{number}">¶</a>'
        f"</h2><p>{text}. <em>{number}</em> <code>x</code>.</p><p>{text}.</p><ul><li>{text}</li>"
        f"<li>{text}</li></ul><div class='highlight-python'><pre><span class='k'>def</span> "
        f"f{number}():\n    <span class='k'>return</span> {number}\n</pre></div>"
        f"<table><tr><th>a</th><th>b</th></tr><tr><td>{number}</td><td>{text}</td></tr></table></section>"
    )


def _large_page(number: int) -> str:
    sections = "".join(_section(number * 10 + index) for index in range(3))
    return f"<h1>Page {number}</h1>{sections}"


def _write_site(folder: Path, pages: int) -> Path:
    menu = "".join(
        f'<li><a href="p{number}.html">Page {number}</a></li>' for number in range(pages)
    )
    for number in range(pages):
        (folder / f"p{number}.html").write_text(
            f"<html lang='en'><head><title>Page {number}</title><link rel='next' "
            f"href='p{number + 1}.html'></head><body><nav><ul>{menu}</ul></nav><main>"
            f"{_large_page(number)}</main></body></html>"
        )
    return folder


@pytest.mark.alone
@pytest.mark.row(
    "R28",
    "Read a large site and a large EPUB file",
    "500 pages of HTML, 200,000 words of EPUB: ≤ 10 s of one core, ≤ 400 MB each",
)
def test_large_books(row: Row, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    parts = {f"p{number}.xhtml": document(_large_page(number)) for number in range(250)}
    results = {
        "HTML": _measure(_write_site(site, 500)),
        "EPUB": _measure(write_epub(tmp_path / "large.epub", parts)),
    }
    row.record(
        "; ".join(f"{kind}: {r[2]:.0f} pages, {r[3]:,.0f} words" for kind, r in results.items()),
        "; ".join(f"{kind}: {r[0]:.1f} s, {r[1]:.0f} MB" for kind, r in results.items()),
        passed=all(
            seconds <= _BOOK_S and memory <= _MOST_MB and words >= 200_000 and coverage == 1.0
            for seconds, memory, _, words, coverage in results.values()
        ),
    )


def _measure(path: Path) -> list[float]:
    """Read the book in a process of its own; return seconds, MB, pages, words and coverage."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


_BOMB_S = 0.05
_LINES = "\n".join(
    f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" if n else "k0: &a0 [x]" for n in range(9)
)
# Refused: the front matter, and the page with it.
_BOMBS = {
    "aliases": f"---\n{_LINES}\n---\ntext",
    "merged": "---\na: &a {x: 1}\nb: {<<: *a}\n---\ntext",
    "brackets": "---\na: " + "[" * 5_000 + "\n---\ntext",
    "closed before": "---\n# " + "]" * 9_000 + "\na: " + "[" * 5_000 + "\n---\ntext",
    "braces": "---\na: " + "{a: " * 5_000 + "\n---\ntext",
    "dashes": "---\n" + "- " * 5_000 + "x\n---\ntext",
    "questions": "---\n" + "? " * 5_000 + "x\n---\ntext",
    "indented": "---\n" + "".join(" " * n + "a:\n" for n in range(200)) + "---\ntext",
    "long": "---\na: " + "x" * 70_000 + "\n---\ntext",
    "many": "---\n" + "".join(f"k{n}: {n}\n" for n in range(9_000)) + "---\ntext",
    "js": "---js\nwhile (true) {}\n---\ntext",
    "toml": "---toml\na = 1\n---\ntext",
    "python": "---\na: !!python/object/apply:os.system [id]\n---\ntext",
    "binary": "---\na: !!binary AAAA\n---\ntext",
    "nul": "text\0text",
}


def _book_with(folder: Path, text: str) -> Path:
    """Return a book of this page next to a good one."""
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nA page of the book.\n")
    (folder / "bomb.mdx").write_text(text)
    return folder


@pytest.mark.row(
    "S13",
    "Files that expand when they are read (bombs)",
    "a problem of that file alone, in < 50 ms",
)
def test_bombs_do_not_go_off(row: Row, tmp_path: Path) -> None:
    faults, slowest = [], 0.0
    for name, text in _BOMBS.items():
        docs = _book_with(tmp_path / name, text)
        book = read_book(docs)
        if [page.file for page in book.pages] != ["good.md"] or not book.problems[0].fatal:
            faults.append(f"{name} was read")
        took = seconds_of(lambda docs=docs: read_book(docs), bar=_BOMB_S)  # type: ignore[misc]
        slowest = max(slowest, took)
        if took >= _BOMB_S:
            faults.append(f"{name} took {took * 1000:.0f} ms")
    faults += _sizes(tmp_path / "sizes")
    row.record(
        f"{len(_BOMBS)} bombs of YAML and other front matter, files of 5 MiB and 1 TiB, archives",
        "; ".join(faults) or f"0 went off; the slowest cost {slowest * 1000:.0f} ms",
        passed=not faults,
    )


def _sizes(docs: Path) -> list[str]:
    """Write a file that is too large, a sparse file, and archives; only EPUB is opened."""
    _book_with(docs, "text")
    (docs / "large.md").write_bytes(b"word " * (MAX_BYTES // 2))
    with (docs / "holes.md").open("wb") as file:
        file.truncate(2**40)
    with zipfile.ZipFile(docs / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.md", "text " * 10_000_000)
    for name in ("bomb.epub", "bomb.md.gz"):
        (docs / name).write_bytes((docs / "bomb.zip").read_bytes())
    took = seconds_of(lambda: read_book(docs), bar=_BOMB_S)
    book = read_book(docs)
    faults = [] if took < _BOMB_S else [f"large files took {took * 1000:.0f} ms"]
    if {page.file for page in book.pages} != {"good.md", "bomb.mdx"}:
        faults.append("a large file or an archive was read")
    if {problem.file for problem in book.problems} != {"large.md", "holes.md", "bomb.epub"}:
        faults.append("a large file was not named")
    return faults


_ALLOWED_S, _ENDED_S = 3, 1.5  # of the processor, for one file; until the process is ended
_CATALOG, _INFO = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< >>"
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_RESOURCES = b"/Resources << /Font << /F1 4 0 R >> >> /MediaBox [0 0 612 792]"


def _file(tree: bytes, *others: bytes, catalog: bytes = _CATALOG, trailer: str = "") -> bytes:
    return assemble([catalog, tree, _INFO, _FONT, *others], trailer)


def _stream(content: bytes, entries: bytes = b"") -> bytes:
    head = b"<< /Length %d %s >>\nstream\n" % (len(content), entries)
    return head + content + b"\nendstream"


def _pdf_page(contents: bytes, more: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """Return a page tree, its page, and the page's content."""
    tree = b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>"
    page = b"<< /Type /Page /Parent 2 0 R /Contents 6 0 R %s %s >>" % (_RESOURCES, more)
    return tree, page, contents


def _zeros(size: int) -> bytes:
    packer = zlib.compressobj(9)
    piece = bytes(1 << 20)
    return b"".join([*(packer.compress(piece) for _ in range(size >> 20)), packer.flush()])


def _bombs() -> Iterator[tuple[str, bytes]]:
    text = b"BT /F1 10 Tf 72 700 Td (A kite flies.) Tj ET"
    cycle = b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"
    yield "page tree cycle", _file(cycle)
    pair = b"<< /Type /Pages /Kids [5 0 R] /Count 1 /Parent 5 0 R >>"
    yield "page tree of two", _file(pair, b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>")
    many = b"<< /Type /Pages /Kids [5 0 R] /Count 2147483647 >>"
    yield "claimed pages", _file(many, *_pdf_page(_stream(text))[1:])
    kids = b" ".join([b"5 0 R"] * 9_999)
    same = b"<< /Type /Pages /Kids [%s] /Count 9999 >>" % kids
    yield "one page 9,999 times", _file(same, *_pdf_page(_stream(text * 50))[1:])
    yield "deep arrays", _file(*_pdf_page(_stream(b"[" * 500_000)))
    yield "deep dictionaries", _file(*_pdf_page(_stream(text), b"/X " + b"<< /X " * 100_000))
    yield "deep states", _file(*_pdf_page(_stream(b"q " * 1_000_000 + text)))
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 7 0 R >> >>"
    tree, page, content = _pdf_page(_stream(b"/X Do"), b"/Resources << /XObject << /X 7 0 R >> >>")
    yield "form in itself", _file(tree, page, content, _stream(b"/X Do " * 50, form))
    yield "length of itself", _file(*_pdf_page(b"<< /Length 6 0 R >>\nstream\nx\nendstream"))
    yield "previous table is itself", _file(*_pdf_page(_stream(text)), trailer="/Prev 9")
    yield "outline cycle", _outline_cycle()
    bomb = _zeros(1 << 30)
    yield "1 GiB of zeros", _file(*_pdf_page(_stream(bomb, b"/Filter /FlateDecode")))
    twice = _stream(zlib.compress(bomb, 9), b"/Filter [/FlateDecode /FlateDecode]")
    yield "1 GiB of zeros, packed twice", _file(*_pdf_page(twice))
    words = zlib.compress(text * 2_000_000, 9)
    yield "26 million characters", _file(*_pdf_page(_stream(words, b"/Filter /FlateDecode")))
    line = b"BT /F1 10 Tf 72 700 Td (%s) Tj ET" % (b"x" * 3_000_000)
    yield "one word", _file(*_pdf_page(_stream(line)))
    small = line.replace(b"/F1 10 Tf", b"/F1 0.0002 Tf")
    yield "one word within the page", _file(*_pdf_page(_stream(small)))
    rows = b" ".join(b"0 -0.002 Td (word and word) Tj" for _ in range(300_000))
    yield "300,000 lines", _file(*_pdf_page(_stream(b"BT /F1 1 Tf 72 700 Td %s ET" % rows)))


def _outline_cycle() -> bytes:
    pdf = PdfWriter()
    pdf.page().text(72, 700, "A kite flies.")
    pdf.outline = [Entry("A", 0, below=[Entry("B", 0)]), Entry("C", 0)]
    content = pdf.bytes()
    first = int(content.split(b"/First ")[1].split()[0])
    return content.replace(b"/Next ", b"/Next %d 0 R /X " % first, 1).replace(
        b"/Title (B)", b"/Title (B) /First %d 0 R" % first
    )


@pytest.mark.row(
    "S21",
    "PDF files with endless structures, or that expand when they are read",
    "pages or a problem of that file, within the limits of its process",
)
def test_pdf_bombs_do_not_go_off(row: Row, tmp_path: Path) -> None:
    wrong, slowest, count = [], 0.0, 0
    for name, content in _bombs():
        file = tmp_path / "bomb.pdf"
        file.write_bytes(content)
        before = _seconds_of_children()
        result = _read_pdf(file)
        took = _seconds_of_children() - before
        print(f"{name}: {len(content):,} bytes, {took:.1f} s: {result}")
        count, slowest = count + 1, max(slowest, took)
        if took > _ALLOWED_S + _ENDED_S or not result:
            wrong.append(f"{name} took {took:.0f} s: {result or 'no pages, no problem'}")
    row.record(
        f"{count} files: cycles of pages, outlines and forms, claims of pages, deep nesting, "
        f"1 GiB in 1 MB; each may use {_ALLOWED_S} s of the processor and 2 GiB",
        "; ".join(wrong) or f"0 went off; the slowest took {slowest:.0f} s of the processor",
        passed=not wrong,
    )


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read_pdf(file: Path) -> str:
    """Return the pages or the problem of a file."""
    problems: list[Problem] = []
    source = PdfSource(WorkerLimits(seconds=_ALLOWED_S, seconds_per_megabyte=0))
    pages = list(source.read(file, Files(Path("/")), SiteOptions(), problems.append))
    fatal = [problem.reason for problem in problems if problem.fatal]
    return f"{len(pages)} pages" if pages else "; ".join(fatal)
