"""A source manifest holds only if reading the sources again would give the same book."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.ingestion.indexer import IngestResult
from bythebook.ingestion.ingest import SourceManifest, find_manifest
from bythebook.ingestion.read_book import LeftOutTotal, ParsedBook, read_book
from bythebook.sources import files

SITE = {
    "site/docusaurus.config.js": "export default {url: 'https://book.example', baseUrl: '/', "
    "title: 'A', presets: [['classic', {docs: {sidebarPath: './sidebars.js'}}]]};",
    "site/sidebars.js": "module.exports = {main: ['b', 'a']};",
    "site/docs/a.mdx": "# A\n\nimport Part from './_part.mdx';\n\n<Part />\n\nKites fly.\n",
    "site/docs/_part.mdx": "What the pages share.\n",
    "site/docs/b.md": "# B\n\nKettles boil.\n",
    "site/docs/more/_category_.json": '{"label": "More"}',
    "site/docs/more/c.md": "# C\n\nSome more.\n",
    "site/docs/picture.txt": "not a page",
}
RESULT = IngestResult(
    3,
    4,
    ("bad.md: why",),
    4,
    0,
    4,
    0,
    1.0,
    2.0,
    notes=("c.md: a note",),
    left_out=(LeftOutTotal("running head", 6, 3, "Chapter One"),),
)


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder / "site" / "docs"


def receipt_of(docs: Path) -> tuple[SourceManifest, ParsedBook]:
    book = read_book(docs)
    return SourceManifest("g1", "here", book.seen, RESULT), book


def test_a_manifest_holds_while_nothing_changes(tmp_path: Path) -> None:
    receipt, _ = receipt_of(write(tmp_path, SITE))
    assert receipt.holds()


def _edit(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: write(folder, {name: text})


CHANGES: dict[str, Callable[[Path], object]] = {
    "a page": _edit("site/docs/b.md", "# B\n\nKettles whistle.\n"),
    "a partial": _edit("site/docs/_part.mdx", "What else they share.\n"),
    "the configuration": _edit(
        "site/docusaurus.config.js", SITE["site/docusaurus.config.js"].replace("'/'", "'/x/'")
    ),
    "the sidebars": _edit("site/sidebars.js", "module.exports = {main: ['a', 'b']};"),
    "a category": _edit("site/docs/more/_category_.json", '{"label": "Else"}'),
    "a new page": _edit("site/docs/more/d.md", "# D\n\nNew.\n"),
    "a nearer configuration": _edit(
        "site/docs/docusaurus.config.js",
        "module.exports = {title: 'B', presets: [['classic', {docs: {path: 'more'}}]]};",
    ),
    "versions": _edit("site/versions.json", '["1.0"]'),
    "a translation": _edit(
        "site/i18n/ur/docusaurus-plugin-content-docs/current/b.md", "# ب\n\nکیتلی۔\n"
    ),
    "another kind of book": _edit("site/docs/SUMMARY.md", "[B](b.md)\n"),
    "a page gone": lambda folder: (folder / "site/docs/b.md").unlink(),
    "a page renamed": lambda folder: (folder / "site/docs/b.md").rename(folder / "site/docs/z.md"),
    "the partial gone": lambda folder: (folder / "site/docs/_part.mdx").unlink(),
    "the configuration gone": lambda folder: (folder / "site/docusaurus.config.js").unlink(),
    "a folder gone": lambda folder: shutil.rmtree(folder / "site/docs/more"),
    "a page that became a link": lambda folder: (
        (folder / "site/docs/b.md").rename(folder / "b.md"),
        (folder / "site/docs/b.md").symlink_to(folder / "b.md"),
    ),
    "a page that became a pipe": lambda folder: (
        (folder / "site/docs/b.md").unlink(),
        os.mkfifo(folder / "site/docs/b.md"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_does_not_hold_after_a_change_of(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    docs = write(tmp_path, SITE)
    receipt, before = receipt_of(docs)
    change(tmp_path)
    assert not receipt.holds()
    after = read_book(docs)
    assert (after.pages, after.problems) != (before.pages, before.problems)


_NAMES = ["a.mdx", "b.md", "_part.mdx", "more/c.md", "more/_category_.yml", "new/d.md", "x.txt"]
_NAMES += ["../docusaurus.config.js", "../sidebars.js", "../versions.json", "../book.toml"]
_TEXTS = ["# T\n\nWords.\n", "import P from './_part.mdx'\n\n<P />\n", "label: L\n", "{}", "", None]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_TEXTS)), max_size=3))
def test_a_manifest_holds_only_for_the_same_book(
    changes: list[tuple[str, str | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        docs = write(Path(folder), SITE)
        receipt, before = receipt_of(docs)
        for name, text in changes:
            if text is None:
                (docs / name).unlink(missing_ok=True)
            else:
                write(docs, {name: text})
        if receipt.holds():
            assert read_book(docs) == before


def test_a_stored_manifest_is_read_back(tmp_path: Path) -> None:
    receipt, _ = receipt_of(write(tmp_path, SITE))
    receipt.keep(tmp_path / "home")
    assert find_manifest(tmp_path / "home", "here") == receipt
    assert find_manifest(tmp_path / "home", "elsewhere") is None
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["sources.json"]


def test_a_missing_or_damaged_manifest_is_none(tmp_path: Path) -> None:
    receipt, _ = receipt_of(write(tmp_path, SITE))
    assert find_manifest(tmp_path, "here") is None
    receipt.keep(tmp_path)
    file = tmp_path / "sources.json"
    whole = json.loads(file.read_text())
    for damaged in (
        "",
        "[]",
        "{",
        '"text"',
        *(json.dumps({k: v for k, v in whole.items() if k != name}) for name in whole),
        json.dumps({**whole, "seen": [["peek", "/", "x", "y"]]}),
        json.dumps({**whole, "reader": "another program"}),
    ):
        file.write_text(damaged)
        assert find_manifest(tmp_path, "here") is None


def test_the_result_of_a_manifest_reports_no_changes(tmp_path: Path) -> None:
    receipt, _ = receipt_of(write(tmp_path, SITE))
    again = receipt.again
    assert (again.embedded, again.changed, again.removed, again.unchanged) == (0, 0, 0, 4)
    assert (again.errors, again.notes, again.exit_code) == (RESULT.errors, RESULT.notes, 1)


def test_sources_access_the_disk_only_through_files() -> None:
    folder = Path(files.__file__).parent
    apart = {"files.py", "slugs.py"}  # the recorder itself, and a reader of package data
    reaching = re.compile(
        r"\b(is_file|is_dir|exists|iterdir|rglob|scandir|listdir|read_text|read_bytes|stat)\("
        r"|(?<![.\w])(?<!def )open\("
    )
    found = {
        (file.name, call[0])
        for file in folder.glob("*.py")
        if file.name not in apart
        for call in reaching.finditer(file.read_text("utf-8"))
    }
    assert not found


# --- the command --------------------------------------------------------------------------------


class Author:
    def __init__(self, folder: Path) -> None:
        self.docs = write(folder, SITE)
        self.home = folder / "home"

    def ingest(self, *options: str) -> dict[str, object]:
        command = [str(Path(sys.executable).with_name("bythebook")), "ingest", str(self.docs)]
        command += ["--home", str(self.home), "--json", *options]
        environment = {"PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=600
        )
        result: dict[str, object] = json.loads(done.stdout)
        assert done.returncode == result["exit_code"], done.stderr
        return {**result, "seconds": 0}

    @property
    def generations(self) -> list[str]:
        folder = self.home / "generations"
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


def test_the_second_ingest_reports_what_reading_again_would(tmp_path: Path) -> None:
    author = Author(tmp_path)
    (author.docs / "broken.md").write_bytes(b"\xff")
    author.ingest()
    short = author.ingest()
    (author.home / "sources.json").unlink()
    assert short == author.ingest()
    assert (short["exit_code"], short["unchanged"]) == (1, short["chunks_created"])


def test_a_damaged_index_is_rebuilt_from_unchanged_sources(tmp_path: Path) -> None:
    author = Author(tmp_path)
    author.ingest()
    (first,) = author.generations
    shutil.rmtree(author.home / "generations" / first)
    assert author.ingest()["embedded"] == 0
    assert author.generations not in ([], [first])


def test_another_site_url_is_another_book(tmp_path: Path) -> None:
    author = Author(tmp_path)
    author.ingest()
    first = author.generations
    author.ingest("--base-url", "/elsewhere/")
    assert author.generations != first
