"""Any HTML page and any EPUB file can be read or is a typed problem, in bounded time."""

from __future__ import annotations

import io
import random
import time
import zipfile
from pathlib import Path

from tests.support.epub_files import document, write_epub

from bythebook.ingestion.pages import split_page
from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import Files
from bythebook_formats.epub.source import EpubSource
from bythebook_formats.html.source import HtmlSource
from reliability.rows import Rows
from reliability.text_mutations import mutate_text

_MOST_S = 2.0  # of processor time, for any one of these small files
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


def test_any_page_or_archive(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R27",
        "Mutate HTML pages and EPUB files",
        requirement="pages or a typed problem of that file; 0 other exceptions; ≤ 2 s each",
    )
    dice, files = random.Random(11), rows.count(2_000, 20_000)
    page = f"<html lang='en'><head><title>T</title></head><body>{_BODY}</body></html>"
    epub = write_epub(
        tmp_path / "seed.epub",
        {"a.xhtml": document(_BODY), "b.xhtml": document("<h1>B</h1><p>b</p>")},
        outline=[("Title", "a.xhtml#t", [("Q", "a.xhtml#q", [])]), ("B", "b.xhtml", [])],
    ).read_bytes()
    failed: list[str] = []
    slow = 0
    for number in range(files):
        for name, content in (
            ("page.html", _mutated_text(page, dice).encode("utf-8", "surrogatepass")),
            ("book.epub", _mutated_archive(epub, dice)),
        ):
            started = time.process_time()
            if (error := _read(tmp_path / name, content)) is not None:
                failed.append(f"{number} {name}: {error!r}")
            slow += time.process_time() - started > _MOST_S
    print("\n".join(failed[:20]))
    row.record(
        f"{files:,} mutated HTML pages and {files:,} mutated EPUB files",
        f"{len(failed)} exceptions, {slow} slow",
        passed=not (failed or slow),
    )


def _read(path: Path, content: bytes) -> Exception | None:
    path.write_bytes(content)
    source = HtmlSource() if path.suffix == ".html" else EpubSource()
    problems: list[Problem] = []
    try:
        for page in source.read(path, Files(Path("/")), SiteOptions(), problems.append):
            split_page(page)
    except Exception as error:
        return error
    return None


def _mutated_text(text: str, dice: random.Random) -> str:
    return mutate_text(text, _PIECES, dice, longest=60, most=400)


def _mutated_archive(content: bytes, dice: random.Random) -> bytes:
    """Change a file in the archive, or the bytes of the archive itself."""
    if dice.randrange(2):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        chosen = dice.choice(sorted(files))
        text = _mutated_text(files[chosen].decode(), dice)
        files[chosen] = text.encode("utf-8", "surrogatepass")
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return target.getvalue()
    data = bytearray(content)
    for _ in range(dice.randrange(1, 20)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.randrange(len(data))] if dice.randrange(4) == 0 else data)
