"""An ingest that is killed, or whose power fails, loses, mixes and leaves behind nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.support.command import run
from tests.support.samples import read, small_book
from tests.support.servers import Node

from bythebook.book import Book
from bythebook.conversations.retention import BATCH, Archiver, Retention
from bythebook.errors import BookError
from bythebook.ingestion.ingest import SourceManifest
from bythebook.interfaces.store import Generation
from bythebook.providers import flat_index
from bythebook.providers.flat_index import FlatGenerationStore
from bythebook.providers.qdrant import server
from bythebook.providers.qdrant.server import ServerGenerationStore
from bythebook.providers.sql import catalog
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.providers.sql.migrations import versions
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.schema import HEAD, metadata
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import FakeEmbedder, MemoryThreads
from bythebook.types import Message, Passage, Question, Role
from reliability.crash import (
    ORIGIN,
    Acknowledging,
    Bench,
    Point,
    after,
    before,
    started,
    survived,
    write_edition,
)
from reliability.crash_check import Tally, Witness, manifest, never_killed
from reliability.rows import FULL, Row

_BAR = "0 lost, 0 torn, 0 duplicates, 0 orphans; the manifest of one that was never killed"
_QUESTION = "At how many degrees does a kettle boil?"


@pytest.mark.row(
    "R1",
    "Kill an ingest at a random moment",
    "0 acknowledged passages lost, 0 mixed books, 0 duplicates, 0 orphans; the same manifest "
    "as an ingest that was never killed",
)
def test_kills_at_random_instants(row: Row, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, bench = random.Random(seed), Bench(tmp_path / "killed")
    bench.folder.mkdir()
    edition = kills = 0
    write_edition(bench.docs, edition)
    duration = _seconds_of(bench)
    witness = Witness(bench)
    while kills < row.count(12, 90):
        # A whole new book, a new edition of it, or the killed one once more.
        edition += chance.choice((14, 1, 0))
        write_edition(bench.docs, edition)
        process = bench.start()
        process.join(chance.uniform(0, 1.1 * duration))
        process.kill()
        process.join(60)
        kills += process.exitcode != 0
        witness.look(finished=process.exitcode == 0)
    write_edition(bench.docs, edition + 1)
    assert bench.run()
    witness.look(finished=True)
    witness.look_around()
    equal = manifest(bench) == manifest(never_killed(bench, tmp_path / "in peace"))
    commands, wrong = _kill_commands(row.count(2, 10), chance, tmp_path)
    row.record(
        f"{kills} SIGKILLs of the ingest and {commands} of the command line with its real model, "
        "most times with another edition",
        f"{witness.tally}, {wrong} wrong books from the command line; "
        f"{'an equal' if equal else 'another'} manifest",
        passed=witness.tally.clean and equal and not wrong,
    )


def _seconds_of(bench: Bench) -> float:
    process = bench.start()
    began = time.monotonic()
    assert survived(process)
    return time.monotonic() - began


def _kill_commands(kills: int, chance: random.Random, folder: Path) -> tuple[int, int]:
    """Kill the real command; return how often, and how often it left a wrong book."""
    docs, home = small_book(folder / "docs"), folder / "home"
    command = [
        *(str(Path(sys.executable).with_name("bythebook")), "ingest", str(docs)),
        *("--home", str(home)),
    ]
    began = time.monotonic()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    duration = time.monotonic() - began
    degrees, wrong = [100], 0
    for number in range(kills):
        _say_degrees(docs, 200 + number)
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, duration))
        killed.kill()
        killed.wait(60)
        found = run("search", _QUESTION, "--home", str(home))
        assert found.returncode == 0, found.stderr
        said = [value for value in [*degrees, 200 + number] if f"{value} degrees" in found.stdout]
        wrong += len(said) != 1  # the old book or the new one, and nothing of any other
        degrees = said
    assert run("ingest", str(docs), "--home", str(home)).returncode == 0
    again = json.loads(run("ingest", str(docs), "--home", str(home), "--json").stdout)
    wrong += (again["embedded"], again["changed"], again["removed"]) != (0, 0, 0)
    found = run("search", _QUESTION, "--home", str(home))
    wrong += f"{200 + kills - 1} degrees" not in found.stdout
    wrong += bool(list(home.rglob("*.unfinished*")))
    return kills, wrong


def _say_degrees(docs: Path, degrees: int) -> None:
    (docs / "kettles.md").write_text(f"# Kettles\n\nThis kettle boils at {degrees} degrees.\n")
    intro = docs / "intro.md"
    intro.write_text(intro.read_text().replace("at 100 degrees Celsius", "when it is hot"))


def around(function: Callable[..., Any]) -> list[Point]:
    return [before(function), after(function)]


# The catalog's transactions; the files of a generation, in the order that they are written; the
# swap; what is discarded after it; the source manifest.
_INGEST = [
    *around(SqlCatalog.add_vectors),
    after(Acknowledging.add_vectors),
    before(SqlCatalog.add_vectors, turn=2),
    before(FlatGenerationStore._publish),
    after(flat_index.to_filterable, turn=30),
    *around(flat_index._write),
    *around(FlatGenerationStore._fill),
    before(flat_index._make_durable),
    before(Path.rename),
    after(FlatGenerationStore._publish),
    before(SqlCatalog.commit),
    *around(catalog._forget_vectors),  # the last statement of the swap, not yet committed
    after(SqlCatalog.commit),
    before(FlatGenerationStore._discard),
    after(shutil._rmtree_safe_fd),  # type: ignore[attr-defined]  # one folder of several is gone
    after(FlatGenerationStore._discard),
    before(SqlCatalog.commit, turn=2),  # the first commit of a new book has no vectors yet
    after(SqlCatalog.commit, turn=2),
    before(SourceManifest.keep),
    before(Path.replace),  # written, but under a temporary name
    after(SourceManifest.keep),
]
_INGEST_ON_A_SERVER = [
    before(ServerGenerationStore._create),
    before(server._index),
    before(server._upsert),
    before(server._set_alias),  # the alias that marks the generation as complete
    before(SqlCatalog.commit),
    after(SqlCatalog.commit),
    before(ServerGenerationStore.discard),
    before(server._remove_alias),  # the alias of the generation before the last one
    before(server._set_alias, turn=2),  # the alias that leads other readers to the served one
    before(server._delete),
]
_ARCHIVE = [
    *around(SqlThreads.archive),
    *around(DeadlineExecutor.check_wanted),  # called just before each transaction commits
    before(DeadlineExecutor.check_wanted, turn=2),
    after(SqlThreads.archive, turn=3),
    *around(SqlThreads.purge),
]


@pytest.mark.real
@pytest.mark.row(
    "R2",
    "Kill ingest, archive and migration at each writing step",
    "0 lost, 0 mixed books, 0 duplicates, 0 orphans at every step",
)
def test_kills_at_named_points(row: Row, tmp_path: Path, qdrant_server: list[Node]) -> None:
    times = row.count(1, 5)
    tally, kills = Tally(), 0
    for name, points, address in (
        ("files", _INGEST, None),
        ("server", _INGEST_ON_A_SERVER, qdrant_server[0].url),
    ):
        bench = Bench(tmp_path / f"{name}-{uuid.uuid4().hex[:8]}", address)
        kills += _kill_ingests(bench, points * times, tally)
    kills += _kill_archivers(tmp_path / "archive", _ARCHIVE * times, tally)
    kills += _kill_migrations(tmp_path / "migrations", times, tally)
    row.record(
        f"{kills} SIGKILLs at {kills // times} points of ingest, swap, manifest, archive and "
        f"migration, each {times} times; then a run to the end",
        str(tally),
        passed=tally.clean,
    )


# --- ingest ----------------------------------------------------------------------------------


def _kill_ingests(bench: Bench, points: list[Point], tally: Tally) -> int:
    bench.folder.mkdir()
    edition = 0
    write_edition(bench.docs, edition)
    assert bench.run()
    witness = Witness(bench)
    witness.tally = tally
    for number, point in enumerate(points, 1):
        edition += 14  # all of it is new: several batches, its words first
        write_edition(bench.docs, edition)
        assert not bench.run(point), f"not reached: {point}"
        witness.look(finished=False)
        if FULL or number == len(points):  # else the next edition is what finishes
            assert bench.run()
            witness.look(finished=True)
            witness.look_around()
    peaceful = never_killed(bench, bench.folder.with_name(f"{bench.folder.name}-in-peace"))
    tally.torn += manifest(bench) != manifest(peaceful)
    return len(points)


# --- archive ---------------------------------------------------------------------------------

_NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
_IDLE, _OLD, _LIVE = 3 * BATCH - 10, 30, 20  # threads: to archive, to delete, to leave alone


def _sweep(home: Path, now: datetime, point: Point | None) -> None:
    engine = open_database(None, home)
    attic, log = SqlThreads(engine, deadline_s=60), SqlQueryLog(engine, deadline_s=60)
    retention = Retention(threads=timedelta(days=30))
    if point is not None:
        point.arm()
    asyncio.run(Archiver(attic, log, retention=retention, clock=lambda: now).sweep())


def _kill_archivers(folder: Path, points: list[Point], tally: Tally) -> int:
    asyncio.run(_talk(folder / "talked"))
    for number, point in enumerate(points):
        home = folder / str(number)
        shutil.copytree(folder / "talked", home)
        later = _NOW + timedelta(minutes=1)
        assert not survived(started(_sweep, home, _NOW, point)), f"not reached: {point}"
        first = _archived(home)
        assert survived(started(_sweep, home, later, None))
        last = _archived(home)
        idle = {name for name in last if name.startswith("idle")}
        tally.acknowledged += len(first)
        tally.lost += (_IDLE + _LIVE - len(last)) + 2 * len(last) - _messages(home)
        tally.orphans += sum(name.startswith("old") for name in last)
        tally.torn += sum((last[name] is None) is (name in idle) for name in last)
        # What one sweep has archived, the next one leaves as it is.
        tally.doubled += sum(first[name] not in (None, last[name]) for name in last)
        shutil.rmtree(home)
    return len(points)


async def _talk(home: Path) -> None:
    home.mkdir(parents=True)
    threads = SqlThreads(open_database(None, home), deadline_s=60)
    for kind, count, age in (
        ("idle", _IDLE, timedelta(hours=2)),
        ("old", _OLD, timedelta(days=60)),
        ("live", _LIVE, timedelta(minutes=5)),
    ):
        for number in range(count):
            said = _NOW - age
            exchange = [Message(Role.USER, "?", said), Message(Role.ASSISTANT, "!", said, 0.5)]
            await threads.append(f"{kind} {number}", exchange, owner=None)
    await threads.close()


def _archived(home: Path) -> dict[str, str | None]:
    """Return when each existing thread was archived."""
    with sqlite3.connect(home / "bythebook.db") as database:
        return dict(database.execute("SELECT thread_id, archived_at FROM threads"))


def _messages(home: Path) -> int:
    with sqlite3.connect(home / "bythebook.db") as database:
        [[count]] = database.execute("SELECT count(*) FROM thread_messages")
        return int(count)


_VERSION = "alembic_version"

# --- migration -------------------------------------------------------------------------------


def _open(home: Path, point: Point | None) -> None:
    if point is not None:
        point.arm()
    open_database(None, home)


def _kill_migrations(folder: Path, times: int, tally: Tally) -> int:
    """Kill the creation of the schema before and after its step; then open the database."""
    file = versions.__path__[0] + f"/{HEAD}_baseline.py"
    upgrade = Point("upgrade", file)
    points = [upgrade, replace(upgrade, after=True)] * times
    for number, point in enumerate(points):
        home = folder / str(number)
        assert not survived(started(_open, home, point)), f"not reached: {point}"
        engine = open_database(None, home)
        tally.torn += set(sa.inspect(engine).get_table_names()) != {*metadata.tables, _VERSION}
        engine.dispose()
    return len(points)


_PART = Question("What does part 1 of a page say?")
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
            and (await library.search(_PART)).hits
        )

    try:
        return asyncio.run(look())
    except BookError:
        return False


def _pragmas(bench: Bench) -> tuple[str, int]:
    with open_database(None, bench.home).connect() as connection:
        ask = connection.exec_driver_sql
        return str(ask("PRAGMA journal_mode").scalar()), int(ask("PRAGMA synchronous").scalar_one())


@pytest.mark.row(
    "R4",
    "Cut the power right after a new generation is published",
    "the index is synced before the row that names it; SQLite in WAL mode with synchronous FULL",
)
def test_a_power_cut_at_the_moment_of_the_swap(row: Row, tmp_path: Path) -> None:
    """The power fails right after the catalog has acknowledged a new generation.

    Of the index a disk then has only what was synced, bytes and names: the test keeps exactly that
    while an ingest runs in its own process. SQLite syncs by itself.
    """
    cuts = partial = 0
    for number in range(row.count(2, 20)):
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
