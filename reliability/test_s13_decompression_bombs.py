"""A small file cannot cost much: a bomb is a reported problem of that file alone."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.support.clock import seconds_of

from bythebook.ingestion.read_book import read_book
from bythebook.sources.files import MAX_BYTES
from reliability.rows import Rows

_MOST_S = 0.05
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
# Read: whatever they hold, in a time that fits their size.
_HEAVY = {
    "quotes": "> " * 2_000 + "deep",
    "lists": "- " * 2_000 + "deep",
    "stars": "*" * 20_000 + "deep",
    "tags": "<div>" * 2_000 + "deep",
    "expressions": "{" * 5_000 + "deep",
    "links": "[" * 20_000 + "deep",
    "entities": "&#" * 20_000 + "deep",
}


def _page(folder: Path, text: str) -> Path:
    """Return a book of this page next to a good one."""
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nA page of the book.\n")
    (folder / "bomb.mdx").write_text(text)
    return folder


def test_bombs_do_not_go_off(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S13",
        "Files that expand when they are read (bombs)",
        requirement="a problem of that file alone, in < 50 ms",
    )
    faults, slowest = [], 0.0
    for name, text in _BOMBS.items():
        docs = _page(tmp_path / name, text)
        book = read_book(docs)
        if [page.file for page in book.pages] != ["good.md"] or not book.problems[0].fatal:
            faults.append(f"{name} was read")
        took = seconds_of(lambda docs=docs: read_book(docs), bar=_MOST_S)  # type: ignore[misc]
        slowest = max(slowest, took)
        if took >= _MOST_S:
            faults.append(f"{name} took {took * 1000:.0f} ms")
    for name, text in _HEAVY.items():
        docs = _page(tmp_path / name, text)
        most = _MOST_S * max(1.0, len(text) / 1024)
        took = seconds_of(lambda docs=docs: read_book(docs), bar=most)  # type: ignore[misc]
        if took >= most or "deep" not in repr(read_book(docs).passages):
            faults.append(f"{name} took {took * 1000:.0f} ms")
    faults += _sizes(tmp_path / "sizes")
    row.record(
        f"{len(_BOMBS)} bombs of YAML and other front matter, {len(_HEAVY)} pages of deep nesting, "
        "files of 5 MiB and 1 TiB, archives",
        "; ".join(faults) or f"0 went off; the slowest cost {slowest * 1000:.0f} ms",
        passed=not faults,
    )


def _sizes(docs: Path) -> list[str]:
    """Write a file that is too large, a sparse file, and archives; only EPUB is opened."""
    _page(docs, "text")
    (docs / "large.md").write_bytes(b"word " * (MAX_BYTES // 2))
    with (docs / "holes.md").open("wb") as file:
        file.truncate(2**40)
    with zipfile.ZipFile(docs / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.md", "text " * 10_000_000)
    for name in ("bomb.epub", "bomb.md.gz"):
        (docs / name).write_bytes((docs / "bomb.zip").read_bytes())
    took = seconds_of(lambda: read_book(docs), bar=_MOST_S)
    book = read_book(docs)
    faults = [] if took < _MOST_S else [f"large files took {took * 1000:.0f} ms"]
    if {page.file for page in book.pages} != {"good.md", "bomb.mdx"}:
        faults.append("a large file or an archive was read")
    if {problem.file for problem in book.problems} != {"large.md", "holes.md", "bomb.epub"}:
        faults.append("a large file was not named")
    return faults
