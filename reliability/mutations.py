"""Read mutated files of one format in a process of its own.

python -m reliability.mutations FORMAT FIRST COUNT

Writes the number of each file before it is read, and what is wrong with the result: a file that
ends or hangs the process is then known by its number.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sources.jupyter import sample_notebook
from tests.sources.test_hostile_input import FRAGMENTS, READINGS, read
from tests.support.epub_files import document, write_epub
from tests.support.pdf_writer import BOLD, COURIER, Entry, PdfWriter
from tests.support.samples import FEATURES, ROOT, RULES

from bythebook.ingestion.pages import split_page
from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import Files
from bythebook_formats.epub.source import EpubSource
from bythebook_formats.html.source import HtmlSource
from bythebook_formats.notebook.source import NotebookSource
from bythebook_formats.pdf.codec import decode_chapter
from bythebook_formats.pdf.worker import read_lines


@dataclass(frozen=True)
class Format:
    seeds: Callable[[], Sequence[bytes]]
    mutate: Callable[[bytes, random.Random], bytes]
    read: Callable[[bytes, int], str]  # returns what is wrong with the result
    seconds: int = 2  # of processor time, for any one file


def faults(form: str, count: int) -> list[str]:
    """Read this many mutated files in one process; start another one after a crash."""
    found: list[str] = []
    number = 0
    while number < count and len(found) < 10:
        command = [sys.executable, "-m", "reliability.mutations", form]
        done = subprocess.run(
            [*command, str(number), str(count - number)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stdout.splitlines()
        found += [f"{form} {line}" for line in lines if " " in line]
        if lines and lines[-1] == "end":
            break
        number = int(lines[-1].partition(" ")[0]) + 1 if lines else count
        found.append(f"{form} {number - 1} ended the process: {done.returncode} {done.stderr}")
    return found


def main(form: str, first: int, count: int) -> None:
    kind = FORMATS[form]
    seeds = kind.seeds()
    for number in range(first, first + count):
        print(number, flush=True)
        dice = random.Random(number)
        content = kind.mutate(dice.choice(seeds), dice)
        signal.setitimer(signal.ITIMER_PROF, kind.seconds)  # ends the process, also in native code
        try:
            fault = kind.read(content, number)
        except Exception as error:
            fault = f"{error!r}: {content[:500]!r}".replace("\n", " ")
        if fault:
            print(f"{number} {fault}", flush=True)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print("end", flush=True)


# --- pieces of text and bytes --------------------------------------------------------------------


def mutate_text(
    text: str, fragments: Sequence[str], dice: random.Random, *, longest: int, most: int
) -> str:
    """Insert fragments, once or up to ``most`` times, and delete or copy pieces of the text.

    Deleted pieces have up to ``longest`` characters, copied ones twice as many.
    """
    pieces = list(text)
    for _ in range(dice.randrange(1, 12)):
        place = dice.randrange(len(pieces) + 1)
        match dice.randrange(4):
            case 0:
                pieces[place:place] = dice.choice(fragments)
            case 1:
                del pieces[place : place + dice.randrange(1, longest)]
            case 2:
                start = dice.randrange(len(pieces) + 1)
                pieces[place:place] = pieces[start : start + dice.randrange(1, 2 * longest)]
            case _:
                pieces[place:place] = dice.choice(fragments) * dice.randrange(1, most)
    return "".join(pieces)


def _mutate_bytes(content: bytearray, tokens: Sequence[bytes], dice: random.Random) -> None:
    place = dice.randrange(len(content) + 1)
    match dice.randrange(5):
        case 0 | 1:
            for _ in range(dice.randrange(1, 20) if content else 0):
                content[dice.randrange(len(content))] = dice.randrange(256)
        case 2:
            del content[place:]
        case 3:
            del content[place : place + dice.randrange(1, 400)]
        case _:
            content[place:place] = dice.choice(tokens) * dice.randrange(1, 30)


def _read_by(source: Any, name: str) -> Callable[[bytes, int], str]:
    """Return how a file is read by this source; a notebook is a whole page or a problem."""
    folder = tempfile.TemporaryDirectory()

    def read_file(content: bytes, number: int) -> str:
        file = Path(folder.name) / name
        file.write_bytes(content)
        problems: list[Problem] = []
        pages = list(source.read(file, Files(Path("/")), SiteOptions(), problems.append))
        parsed = [split_page(page) for page in pages]
        for passage in (passage for page in parsed for passage in page.passages):
            passage.text.encode()
        if isinstance(source, NotebookSource):
            if missing := [word for page in parsed for word in page.missing]:
                return f"lost {missing}"
            if not pages and not any(problem.fatal for problem in problems):
                return "no pages, no problem"
        return ""

    return read_file


# --- Markdown and MDX ----------------------------------------------------------------------------


def _markdown_seeds() -> list[bytes]:
    pages = [*sorted(RULES.rglob("*.md*")), *sorted(FEATURES.rglob("*.mdx"))]
    return [page.read_bytes() for page in pages]


def _mutate_markdown(seed: bytes, dice: random.Random) -> bytes:
    start = seed.decode()[: dice.randrange(200, 4000)]
    return mutate_text(start, FRAGMENTS, dice, longest=30, most=40).encode()


def _read_markdown(content: bytes, number: int) -> str:
    read(content.decode(), READINGS[number % len(READINGS)])
    return ""


# --- HTML and EPUB -------------------------------------------------------------------------------

_BODY = (
    '<main><h1 id="t">Title<a class="headerlink" href="#t">¶</a></h1><p>Some <b>words</b> of '
    '<code>text</code>.<sup><a href="#fn1">1</a></sup></p><ul><li>a<ol start="2"><li>b</li></ol>'
    '</li></ul><table><caption>c</caption><tr><th colspan="2">h</th></tr><tr><td>1</td><td>2</td>'
    '</tr></table><div class="highlight-python"><pre><span class="linenos">1</span>x = 1\n</pre>'
    '</div><div class="admonition"><p class="admonition-title">Note</p><p>n</p></div><dl>'
    "<dt>d</dt><dd>e</dd></dl><details><summary>s</summary>t</details><div role='tablist'><button "
    "role='tab'>A</button></div><div role='tabpanel' hidden>p</div><span class='math'>\\(x\\)"
    '</span><math display="block"><mi>x</mi></math><img alt="i"/><section id="q"><h2>Q</h2>'
    "</section></main>"
)
_PIECES = [
    "<", ">", "</", "<div>", "</div>", "<table>", "<tr>", "<td colspan='99999999'>", "<li>",
    "<ol start='-9'>", "<pre>", "</pre>", "<math>", "<svg>", "<script>", "<![CDATA[", "<!--", "-->",
    "&#x110000;", "&amp", "\0", "<dl><dd>", "<dt>", "<details>", "<h2 id=''>", "<nav>", "<main>",
    "<a href='http://[::1'>", "<body>", "<frameset>", "<template>", "<select><option>",
    "<p hidden>", "<title>", "<?xml?>", "<!DOCTYPE x [", "<link rel=canonical href='http://[x'>",
    "<meta charset=utf-16>", "\u202e", "\ud7ff", "<annotation>",
]  # fmt: skip


def _html_seeds() -> list[bytes]:
    head = "<html lang='en'><head><title>T</title></head>"
    return [f"{head}<body>{_BODY}</body></html>".encode()]


def _mutate_html(seed: bytes, dice: random.Random) -> bytes:
    text = mutate_text(seed.decode(), _PIECES, dice, longest=60, most=400)
    return text.encode("utf-8", "surrogatepass")


def _epub_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        book = write_epub(
            Path(folder) / "seed.epub",
            {"a.xhtml": document(_BODY), "b.xhtml": document("<h1>B</h1><p>b</p>")},
            outline=[("Title", "a.xhtml#t", [("Q", "a.xhtml#q", [])]), ("B", "b.xhtml", [])],
        )
        return [book.read_bytes()]


def _mutate_epub(seed: bytes, dice: random.Random) -> bytes:
    """Change a file in the archive, or the bytes of the archive itself."""
    if dice.randrange(2):
        content = bytearray(seed)
        _mutate_bytes(content, [b"PK\3\4", b"\0"], dice)
        return bytes(content)
    with zipfile.ZipFile(io.BytesIO(seed)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    chosen = dice.choice(sorted(files))
    files[chosen] = _mutate_html(files[chosen], dice)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


# --- notebooks -----------------------------------------------------------------------------------

_WRONG: list[Any] = [
    None, True, -1, 1e308, 10**30, "", "text", "\ud83d", "\0", "\x1b[31m", [], {}, [[]], [None],
    {"text/plain": 1}, {"data": {"text/html": [1]}}, ["a", 5], [{"cell_type": "markdown"}], "# a\n",
]  # fmt: skip
_DEEP = [opening * 100_000 for opening in ("[", '{"a":', '[{"cells":', '{"cells":[')]
_ENCODINGS = ("utf-16", "latin-1", "utf-8-sig", "utf-32")
_CELLS = 12


def _notebook_seeds() -> list[bytes]:
    """Return short notebooks in both formats."""
    value = json.loads(sample_notebook())
    cells = value["cells"]
    short = [{**value, "cells": cells[at : at + _CELLS]} for at in range(0, len(cells), _CELLS)]
    old = [
        {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [_old(cell) for cell in one]}]}
        for one in (notebook["cells"] for notebook in short[:5])
    ]
    return [json.dumps(one).encode() for one in (*short, *old)]


def _old(cell: dict[str, Any]) -> dict[str, Any]:
    outputs = [{"output_type": "pyout", "text": "1", "png": "aa"}]
    return {**cell, "input": cell["source"], "language": "python", "outputs": outputs}


def _mutate_notebook(seed: bytes, dice: random.Random) -> bytes:
    if dice.randrange(400) == 0:
        return dice.choice(_DEEP).encode()
    value = json.loads(seed)
    for _ in range(dice.randrange(4)):
        _swap(value, dice)
    text = json.dumps(value, ensure_ascii=dice.random() < 0.5)
    content = bytearray(text.encode("utf-8", "surrogatepass"))
    match dice.randrange(8):
        case 0 | 1:
            _mutate_bytes(content, [b"[", b"{", b'"', b"0"], dice)
        case 2:
            return content.decode("utf-8", "replace").encode(dice.choice(_ENCODINGS), "replace")
        case 3:
            return bytes(content).replace(b'"nbformat": 4', b'"nbformat": 4' + b"0" * 9000, 1)
        case _:
            pass
    return bytes(content)


def _swap(value: Any, dice: random.Random) -> None:
    """Replace one value somewhere in the notebook, mostly in its cells, by one of another type."""
    value = value.get("cells", value) if dice.random() < 0.8 else value
    while isinstance(value, (dict, list)) and value:
        keys: Sequence[Any] = list(value) if isinstance(value, dict) else range(len(value))
        key = dice.choice(keys)
        inner = value[key]
        if not (isinstance(inner, (dict, list)) and inner) or dice.random() < 0.02:
            value[key] = copy.deepcopy(dice.choice(_WRONG))
            return
        value = inner


# --- PDF -----------------------------------------------------------------------------------------

_OBJECT = re.compile(rb"\d+ 0 obj\n.*?endobj\n", re.DOTALL)
_NUMBER = re.compile(rb"\d+")
_TOKENS = (b"<<", b">>", b"[", b"]", b"(", b")", b"/Kids", b"0 R", b"stream", b"\0", b"-1", b"1e99")
_PROSE = "the kite flies on a string because the wind pushes it upwards and keeps it there"


def _pdf_seeds() -> list[bytes]:
    """Return files with everything that is looked for in them."""
    return [_pdf(compress=compress).bytes() for compress in (False, True)]


def _pdf(*, compress: bool) -> PdfWriter:
    pdf = PdfWriter("Kites", compress=compress)
    for number in range(5):
        page = pdf.page().text(72, 760, f"Kites {number}").text(72, 720, "Lift", 18, BOLD)
        prose = [(_PROSE[start:] + _PROSE)[:50] for start in range(8)]
        page.lines(72, 680, prose).lines(320, 680, prose)
        page.lines(72, 560, ["if wind:", "    fly()"], font=COURIER)
        for row in range(4):
            page.text(72, 500 - 14 * row, "cell").text(200, 500 - 14 * row, "another cell")
        page.dot(74, 402).text(84, 400, "paper").text(72, 380, "1. string").turned(30, 200, "up")
        page.text(72, 60, "1 A note.", 7)
    pdf.page().image()
    pdf.outline = [Entry("Lift", number, 730, [Entry("cell", number)]) for number in range(5)]
    return pdf


def _mutate_pdf(seed: bytes, dice: random.Random) -> bytes:
    content = bytearray(seed)
    for _ in range(dice.randrange(1, 5)):
        match dice.randrange(9):
            case 0 | 1:  # put the body of one object in the place of another
                objects = [found.span() for found in _OBJECT.finditer(content)]
                if len(objects) > 1:
                    (start, end), (other, last) = dice.sample(objects, 2)
                    content[start:end] = content[start : start + 8] + content[other + 8 : last]
            case 2 | 3:  # replace a number: of an object, a length, a count, a position
                if numbers := [found.span() for found in _NUMBER.finditer(content)]:
                    start, end = dice.choice(numbers)
                    content[start:end] = str(dice.choice((0, 1, 7, 2**31, 10**20))).encode()
            case _:
                _mutate_bytes(content, _TOKENS, dice)
    return bytes(content or b"%PDF-1.7\n")


def _read_pdf(content: bytes, number: int) -> str:
    for line in read_lines(content, "mutated"):
        value = json.loads(line)
        if "chapter" in value:
            decode_chapter(value["chapter"])
        elif str(value.get("refused", "")).startswith("cannot be read ("):
            return str(value["refused"])
    return ""


FORMATS = {
    "markdown": Format(_markdown_seeds, _mutate_markdown, _read_markdown),
    "html": Format(_html_seeds, _mutate_html, _read_by(HtmlSource(), "page.html")),
    "epub": Format(_epub_seeds, _mutate_epub, _read_by(EpubSource(), "book.epub")),
    "notebook": Format(_notebook_seeds, _mutate_notebook, _read_by(NotebookSource(), "a.ipynb")),
    "pdf": Format(_pdf_seeds, _mutate_pdf, _read_pdf, seconds=20),
}

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
