"""A PDF file cannot cost much: endless structures and bombs are a problem of that file alone."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.pdf_writer import Entry, PdfWriter, assemble

from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import Files
from bythebook_formats.pdf.process import WorkerLimits
from bythebook_formats.pdf.source import PdfSource
from reliability.rows import Rows

_SECONDS = 10  # of the processor
_MOST_S = 40.0  # by the clock: the machine may be busy
_CATALOG, _INFO = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< >>"
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_RESOURCES = b"/Resources << /Font << /F1 4 0 R >> >> /MediaBox [0 0 612 792]"


def _file(tree: bytes, *others: bytes, catalog: bytes = _CATALOG, trailer: str = "") -> bytes:
    return assemble([catalog, tree, _INFO, _FONT, *others], trailer)


def _stream(content: bytes, entries: bytes = b"") -> bytes:
    head = b"<< /Length %d %s >>\nstream\n" % (len(content), entries)
    return head + content + b"\nendstream"


def _page(contents: bytes, more: bytes = b"") -> tuple[bytes, bytes, bytes]:
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
    yield "claimed pages", _file(many, *_page(_stream(text))[1:])
    kids = b" ".join([b"5 0 R"] * 9_999)
    same = b"<< /Type /Pages /Kids [%s] /Count 9999 >>" % kids
    yield "one page 9,999 times", _file(same, *_page(_stream(text * 50))[1:])
    yield "deep arrays", _file(*_page(_stream(b"[" * 500_000)))
    yield "deep dictionaries", _file(*_page(_stream(text), b"/X " + b"<< /X " * 100_000))
    yield "deep states", _file(*_page(_stream(b"q " * 1_000_000 + text)))
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 7 0 R >> >>"
    tree, page, content = _page(_stream(b"/X Do"), b"/Resources << /XObject << /X 7 0 R >> >>")
    yield "form in itself", _file(tree, page, content, _stream(b"/X Do " * 50, form))
    yield "length of itself", _file(*_page(b"<< /Length 6 0 R >>\nstream\nx\nendstream"))
    yield "previous table is itself", _file(*_page(_stream(text)), trailer="/Prev 9")
    yield "outline cycle", _outline_cycle()
    bomb = _zeros(1 << 30)
    yield "1 GiB of zeros", _file(*_page(_stream(bomb, b"/Filter /FlateDecode")))
    twice = _stream(zlib.compress(bomb, 9), b"/Filter [/FlateDecode /FlateDecode]")
    yield "1 GiB of zeros, packed twice", _file(*_page(twice))
    words = zlib.compress(text * 2_000_000, 9)
    yield "26 million characters", _file(*_page(_stream(words, b"/Filter /FlateDecode")))
    line = b"BT /F1 10 Tf 72 700 Td (%s) Tj ET" % (b"x" * 3_000_000)
    yield "one word", _file(*_page(_stream(line)))
    small = line.replace(b"/F1 10 Tf", b"/F1 0.0002 Tf")
    yield "one word within the page", _file(*_page(_stream(small)))
    rows = b" ".join(b"0 -0.002 Td (word and word) Tj" for _ in range(300_000))
    yield "300,000 lines", _file(*_page(_stream(b"BT /F1 1 Tf 72 700 Td %s ET" % rows)))


def _outline_cycle() -> bytes:
    pdf = PdfWriter()
    pdf.page().text(72, 700, "A kite flies.")
    pdf.outline = [Entry("A", 0, below=[Entry("B", 0)]), Entry("C", 0)]
    content = pdf.bytes()
    first = int(content.split(b"/First ")[1].split()[0])
    return content.replace(b"/Next ", b"/Next %d 0 R /X " % first, 1).replace(
        b"/Title (B)", b"/Title (B) /First %d 0 R" % first
    )


@pytest.mark.skipif(os.name != "posix", reason="limits of a process need POSIX")
def test_pdf_bombs_do_not_go_off(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S21",
        "PDF files with endless structures, or that expand when they are read",
        requirement="pages or a problem of that file, within the limits of its process",
    )
    faults, slowest, count = [], 0.0, 0
    for name, content in _bombs():
        file = tmp_path / "bomb.pdf"
        file.write_bytes(content)
        started = time.perf_counter()
        result = _read(file)
        took = time.perf_counter() - started
        print(f"{name}: {len(content):,} bytes, {took:.1f} s: {result}")
        count, slowest = count + 1, max(slowest, took)
        if took > _MOST_S or not result:
            faults.append(f"{name} took {took:.0f} s: {result or 'no pages, no problem'}")
    row.record(
        f"{count} files: cycles of pages, outlines and forms, claims of pages, deep nesting, "
        f"1 GiB in 1 MB; each may use {_SECONDS} s of the processor and 2 GiB",
        "; ".join(faults) or f"0 went off; the slowest took {slowest:.0f} s",
        passed=not faults,
    )


def _read(file: Path) -> str:
    """Return the pages or the problem of a file."""
    problems: list[Problem] = []
    source = PdfSource(WorkerLimits(seconds=_SECONDS, seconds_per_megabyte=0))
    pages = list(source.read(file, Files(Path("/")), SiteOptions(), problems.append))
    fatal = [problem.reason for problem in problems if problem.fatal]
    return f"{len(pages)} pages" if pages else "; ".join(fatal)
