"""A book is read from its own folder; nothing leads out of it.

A hard link is a second name of the same file and cannot be told from the first. Whoever can create
one could copy the file as well (Linux: protected_hardlinks), and refusing files with several names
would refuse books in hard-linked snapshots and backups.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path, PurePosixPath

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.source import UnreadableFile
from bythebook.sources.files import read_bytes
from bythebook.text.passage_records import to_record
from reliability.rows import Rows

_CANARY = "heliotrope-canary"
_PATHS = (
    "../secret.md",
    "a/../../secret.md",
    "./../secret.md",
    "..",
    "/etc/hostname",
    "//etc/hostname",
    "a\0/../secret.md",
    "secret.md\0.md",
    "link.md",
    "linked/secret.md",
    "linked/../secret.md",
    "loop/loop/link.md",
    "chain.md",
    "proc/environ",
    "environ.md",
    "pipe.md",
    "folder.md",
    "a" * 300 + ".md",
    "",
)
_IMPORTS = (
    "../../secret.md",
    "./link.md",
    "./linked/secret.md",
    "@site/../secret.md",
    "@site/docs/../../secret.md",
    "@site/../outside/secret.md",
    "/etc/hostname",
    "!!raw-loader!../../secret.md",
    "!!raw-loader!/proc/self/environ",
    "file:///etc/hostname",
    "./chain.md",
    "..\\\\..\\\\secret.md",
    "%2e%2e/%2e%2e/secret.md",
)


def _site(folder: Path) -> Path:
    """Write a site next to a secret, with every kind of file that could lead to it."""
    (folder / "outside").mkdir()
    secret = folder / "outside" / "secret.md"
    for place in (secret, folder / "secret.md"):
        place.write_text(f"# Secret\n\n{_CANARY}\n")
    docs = folder / "site" / "docs"
    docs.mkdir(parents=True)
    (folder / "site" / "docusaurus.config.js").write_text("export default {url: 'https://a.b'};")
    (docs / "good.md").write_text("# Good\n\nA page of the book.\n")
    for number, path in enumerate(_IMPORTS):
        text = f"import A from '{path}';\n\n# Page {number}\n\nopen <A/> {{A}} {{A.default}}\n"
        (docs / f"page{number}.mdx").write_text(text)
    (docs / "link.md").symlink_to(secret)
    (docs / "linked").symlink_to(secret.parent)
    (docs / "loop").symlink_to(docs)
    (docs / "chain.md").symlink_to(docs / "link.md")
    (docs / "proc").symlink_to("/proc/self")
    (docs / "environ.md").symlink_to("/proc/self/environ")
    (docs / "dangling.md").symlink_to(folder / "nowhere")
    (docs / "folder.md").mkdir()
    os.mkfifo(docs / "pipe.md")
    (docs / "_category_.json").symlink_to(secret)
    (docs / "sidebars.js").symlink_to(secret)
    return docs


# Roots that the configuration of a book names, and the file that does. "{0}" is the parent folder.
_ROOTS = ("../outside", "{0}/outside", "a/../../outside", "linked", "linked/.", "{0}", "..", "/etc")
_CONFIGURED = {
    "book.toml": "[book]\nsrc = '{0}'\n",
    "docusaurus.config.js": "export default {{presets: [['classic', {{docs: {{path: '{0}'}}}}]]}};",
    "_toc.yml": "format: jb-book\nroot: {0}/secret\nchapters:\n- glob: {0}/*\n- file: {0}/secret\n",
    "myst.yml": "project:\n  toc:\n  - file: {0}/secret.md\n  - pattern: '{0}/*.md'\n",
}


def _foreign_roots(folder: Path) -> Iterator[str]:
    """Read books whose configuration names a folder outside; yield what they tell about it."""
    for name in ("outside/SUMMARY.md", "SUMMARY.md"):
        (folder / name).write_text("# Summary\n\n- [Secret](secret.md)\n")
    for number, (root, name) in enumerate(product(_ROOTS, _CONFIGURED)):
        book = folder / f"book{number}"
        book.mkdir()
        (book / name).write_text(_CONFIGURED[name].format(root.format(folder)))
        (book / "linked").symlink_to(folder / "outside")
        (book / "a.md").write_text("# A\n\nA page of the book.\n")
        try:
            read = read_book(book)
            told = repr([to_record(passage) for passage in read.passages])
            told += repr([problem.file for problem in read.problems])
        except SourceError:
            continue
        if _CANARY in told or "secret.md" in told or "hostname" in told:
            yield f"{name}: {root}"


def _leaks(docs: Path) -> list[str]:
    leaks = list(_foreign_roots(docs.parent.parent))
    for path in _PATHS:
        try:
            content = read_bytes(docs, PurePosixPath(path))
        except UnreadableFile:
            continue
        leaks.append(f"{path!r}: {content[:40]!r}")
    book = read_book(docs)
    told = repr([to_record(passage) for passage in book.passages])
    assert [page.file for page in book.pages if page.file == "good.md"] == ["good.md"]
    assert len(book.pages) == 1 + len(_IMPORTS)
    secrets = (_CANARY, os.uname().nodename, os.environ["PATH"])
    return leaks + [secret for secret in secrets if secret in told]


def _raced(docs: Path, looks: int) -> tuple[int, int]:
    """Read while a folder and a file turn into links and back; return reads and leaks."""
    outside = docs.parent.parent / "outside"
    for name in ("inner", "kept"):
        (docs / name).mkdir()
        (docs / name / "secret.md").write_text("a page of the book")
    (docs / "file.md").write_text("a page of the book")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for path, target in (
                (docs / "inner", outside),
                (docs / "file.md", outside / "secret.md"),
            ):
                away = path.with_name(f".{path.name}")
                path.rename(away)
                path.symlink_to(target)
                path.unlink()
                away.rename(path)

    swapping = threading.Thread(target=swap)
    swapping.start()
    read = leaks = 0
    try:
        for number in range(looks):
            path = PurePosixPath(("inner/secret.md", "file.md")[number % 2])
            try:
                leaks += _CANARY.encode() in read_bytes(docs, path)
                read += 1
            except UnreadableFile:
                pass
    finally:
        stop.set()
        swapping.join()
    return read, leaks


def _hard_link_is_read(folder: Path) -> bool:
    """Return whether a hard-linked file is read like any other page."""
    docs = folder / "snapshot"
    docs.mkdir()
    (folder / "first-name.md").write_text("# Kettles\n\nA kettle boils water.\n")
    (docs / "kettles.md").hardlink_to(folder / "first-name.md")
    [passage] = read_book(docs).passages
    return passage.text == "A kettle boils water."


@pytest.mark.smoke
def test_nothing_outside_the_book_is_read(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S12",
        "Paths, links and races that lead out of the book",
        requirement="0 bytes from outside",
    )
    docs = _site(tmp_path)
    leaks = _leaks(docs)
    looks = rows.count(5_000, 50_000)
    read, raced = _raced(docs, looks)
    linked = _hard_link_is_read(tmp_path)
    row.record(
        f"{len(_PATHS)} paths (.., absolute, NUL, links to files, folders, loops, /proc, a FIFO), "
        f"{len(_IMPORTS)} imports of pages, {len(_ROOTS) * len(_CONFIGURED)} configured roots of 4 "
        f"formats, and {looks:,} readings while file and folder turn "
        "into links and back. A hard link is a file of the book: nothing tells it from one",
        "; ".join(leaks)
        or f"{raced} bytes from outside; {read:,} of the readings met the file; "
        f"hard links are read: {'yes' if linked else 'no'}",
        passed=not leaks and not raced and read > 0 and linked,
    )
