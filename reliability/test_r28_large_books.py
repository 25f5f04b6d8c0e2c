"""A large site or EPUB file is read quickly and in little memory, before it is embedded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.epub_files import document, write_epub

from reliability.rows import Rows

_MOST_S, _MOST_MB = 10.0, 400
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
    "the",
    "hand",
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


def _page(number: int) -> str:
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
            f"{_page(number)}</main></body></html>"
        )
    return folder


@pytest.mark.alone
def test_large_books(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R28",
        "Read a large site and a large EPUB file",
        requirement="500 pages of HTML, 200,000 words of EPUB: ≤ 10 s of one core, ≤ 400 MB each",
    )
    site = tmp_path / "site"
    site.mkdir()
    parts = {f"p{number}.xhtml": document(_page(number)) for number in range(250)}
    results = {
        "HTML": _measure(_write_site(site, 500)),
        "EPUB": _measure(write_epub(tmp_path / "large.epub", parts)),
    }
    row.record(
        "; ".join(f"{kind}: {r[2]:.0f} pages, {r[3]:,.0f} words" for kind, r in results.items()),
        "; ".join(f"{kind}: {r[0]:.1f} s, {r[1]:.0f} MB" for kind, r in results.items()),
        passed=all(
            seconds <= _MOST_S and memory <= _MOST_MB and words >= 200_000 and coverage == 1.0
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
