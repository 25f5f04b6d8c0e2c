"""The power fails right after the catalog has acknowledged a new generation.

Of the index a disk then has only what was synced, bytes and names. The test keeps exactly that,
file by file and folder by folder, while an ingest runs in its own process; SQLite syncs by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.samples import read

from bythebook.book import Book
from bythebook.errors import BookError
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.providers.testing import FakeEmbedder, MemoryThreads
from bythebook.types import Question
from reliability.crash import ORIGIN, Bench, started, survived, write_edition
from reliability.rows import Rows

if TYPE_CHECKING:
    from bythebook.interfaces.store import Generation
    from bythebook.types import Passage

_QUESTION = Question("What does part 1 of a page say?")
_SQLITE_FILES = ("bythebook.db", "bythebook.db-wal")


class _Disk:
    """What was synced, by inode: the bytes of files and the names in folders."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._names: dict[int, dict[str, int]] = {}
        self._sync = os.fsync
        os.fsync = self.fsync

    def fsync(self, file: Any) -> None:
        self._sync(file)
        number = file if isinstance(file, int) else file.fileno()
        found = os.fstat(number)
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(number) as entries:
                self._names[found.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            _copy(Path(f"/proc/self/fd/{number}").resolve(), self._folder / str(found.st_ino))

    def lose_power(self, home: Path) -> None:
        (self._folder / "names").write_text(json.dumps([home.stat().st_ino, self._names]))
        os.kill(os.getpid(), signal.SIGKILL)


def _restored(disk: Path, home: Path) -> None:
    """Return the folder as it is when the power is back."""
    root, names = json.loads((disk / "names").read_text())

    def restore(inode: int, path: Path) -> None:
        if str(inode) in names:
            path.mkdir()
            for name, below in names[str(inode)].items():
                restore(below, path / name)
        elif (disk / str(inode)).exists():
            _copy(disk / str(inode), path)
        else:
            path.touch()  # its name was synced, and nothing of what it is

    home.mkdir()
    for name, inode in names.get(str(root), {}).items():
        restore(inode, home / name)


def _copy(file: Path, to: Path) -> None:
    # The engine reserves far more room than it fills: holes stay holes.
    subprocess.run(["cp", "--sparse=always", str(file), str(to)], check=True)


class _LastWords(SqlCatalog):
    """Catalog that cuts the power with its n-th acknowledged commit."""

    disk: _Disk
    turn: int

    def commit(self, passages: Sequence[Passage], generation: Generation, **more: Any) -> None:
        super().commit(passages, generation, **more)
        self.turn -= 1
        if not self.turn:
            self.disk.lose_power(self._home)


def _ingest(bench: Bench, disk: Path, turn: int) -> None:
    catalog = _LastWords(open_database(None, bench.home), bench.home)
    catalog.turn, catalog.disk = turn, _Disk(disk)
    library = Book(
        embedder=FakeEmbedder(), store=bench.shelf(), catalog=catalog, threads=MemoryThreads()
    )
    asyncio.run(library.ingest(read(bench.docs), origin=ORIGIN))


def _is_whole(bench: Bench) -> bool:
    """Return whether the book that the catalog names is complete."""

    async def look() -> bool:
        library, passages = bench.library(), bench.catalog().passages()
        report = await library.ingesting().check_index(read(bench.docs))
        return bool(
            report.index_is_right
            and report.passages == len(passages) == len(read(bench.docs).passages)
            and (await library.search(_QUESTION)).hits
        )

    try:
        return asyncio.run(look())
    except BookError:
        return False


def _pragmas(bench: Bench) -> tuple[str, int]:
    with open_database(None, bench.home).connect() as connection:
        ask = connection.exec_driver_sql
        return str(ask("PRAGMA journal_mode").scalar()), int(ask("PRAGMA synchronous").scalar_one())


def test_a_power_cut_at_the_moment_of_the_swap(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R4",
        "Cut the power right after a new generation is published",
        requirement=(
            "the index is synced before the row that names it; SQLite in WAL mode with "
            "synchronous FULL"
        ),
    )
    cuts = partial = 0
    for number in range(rows.count(2, 20)):
        for turn in (1, 2):  # its words alone, then all of it
            bench, after = Bench(tmp_path / "before"), Bench(tmp_path / "after")
            bench.folder.mkdir()
            write_edition(bench.docs, 14 * number)
            bench.home.mkdir()
            assert not survived(started(_ingest, bench, bench.folder / "disk", turn))
            after.folder.mkdir()
            _restored(bench.folder / "disk", after.home)
            for name in _SQLITE_FILES:
                shutil.copy(bench.home / name, after.home / name)
            shutil.copytree(bench.docs, after.docs)
            cuts, partial = cuts + 1, partial + (not _is_whole(after))
            pragmas = _pragmas(after)
            for folder in (bench.folder, after.folder):
                shutil.rmtree(folder)
    row.record(
        f"{cuts} power cuts: of the index, only what was synced is there afterwards",
        f"{partial} books with something missing; SQLite in {pragmas[0]}, synchronous {pragmas[1]}",
        passed=not partial and pragmas == ("wal", 2),
    )
