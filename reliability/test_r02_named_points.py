"""A kill at every step that writes: of an ingest, a swap, a receipt, an archive, a migration."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.servers import Node

from bythebook.conversations.retention import BATCH, Archiver, Retention
from bythebook.providers.sql.catalog import open_database
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.schema import HEAD
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Message, Role
from reliability.killing import Bench, Point, started, survived, write_edition
from reliability.ledger import FULL, Ledger
from reliability.process_watch import Tally, Witness, manifest, never_killed
from reliability.schema import content, fill, go, lost, revisions


def around(function: str, *, file: str = "") -> list[Point]:
    return [Point(function, after=after, file=file) for after in (False, True)]


# The catalog's transactions; the files of a generation, in the order that they are written; the
# swap; what is discarded after it; the receipt.
_INGEST = [
    *around("SqlCatalog.add_vectors"),
    Point("_Acknowledging.add_vectors", after=True),
    Point("SqlCatalog.add_vectors", turn=2),
    Point("EdgeShelf._publish"),
    Point("EntryWriter.add", after=True, turn=30),
    *around("EntryWriter.__exit__"),
    *around("EdgeShelf._fill"),
    *around("seal", file="seal.py"),
    Point("Path.rename"),
    Point("EdgeShelf._publish", after=True),
    Point("SqlCatalog.commit"),
    *around("_forget_vectors"),  # the last statement of the swap, not yet committed
    Point("SqlCatalog.commit", after=True),
    Point("EdgeShelf._discard"),
    Point("_rmtree_safe_fd", after=True),  # one folder of a generation is gone, others are not
    Point("EdgeShelf._discard", after=True),
    Point("SqlCatalog.commit", turn=2),  # the first swap of a new book brings its words alone
    Point("SqlCatalog.commit", turn=2, after=True),
    Point("Receipt.keep"),
    Point("Path.replace"),  # written, but not in its place
    Point("Receipt.keep", after=True),
]
_INGEST_ON_A_SERVER = [
    Point("ServerShelf._create"),
    Point("_index", file="qdrant_server.py"),
    Point("_upsert"),
    Point("_give"),  # the alias that says that all of it is there
    Point("SqlCatalog.commit"),
    Point("SqlCatalog.commit", after=True),
    Point("ServerShelf.discard"),
    Point("_drop"),  # the alias of the generation before the last one
    Point("_give", turn=2),  # the alias that leads other readers to the served one
    Point("_delete"),
]
_ARCHIVE = [
    *around("SqlThreads._archive"),
    *around("Hands.check_wanted"),  # what every transaction asks just before its end
    Point("Hands.check_wanted", turn=2),
    Point("SqlThreads._archive", turn=3, after=True),
    *around("SqlThreads._purge"),
]


@pytest.mark.real
def test_kills_at_named_points(proof: Ledger, tmp_path: Path, qdrant_server: list[Node]) -> None:
    row = proof(
        "R2",
        "Work is killed at a step that has a name",
        bar="0 lost, 0 torn, 0 duplicates, 0 orphans at every step",
    )
    times = proof.times(1, 5)
    tally, kills = Tally(), 0
    for name, points, address in (
        ("edge", _INGEST, None),
        ("server", _INGEST_ON_A_SERVER, qdrant_server[0].url),
    ):
        bench = Bench(tmp_path / f"{name}-{uuid.uuid4().hex[:8]}", address)
        kills += _kill_ingests(bench, points * times, tally)
    kills += _kill_archivers(tmp_path / "archive", _ARCHIVE * times, tally)
    kills += _kill_migrations(tmp_path / "migrations", times, tally)
    row.enter(
        f"{kills} SIGKILLs at {kills // times} points of ingest, swap, receipt, archive and "
        f"migration, each {times} times; then a run to the end",
        str(tally),
        held=tally.clean,
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
        assert not bench.run(point), f"never came {point}"
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
        assert not survived(started(_sweep, home, _NOW, point)), f"never came {point}"
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
    """When each thread that is there was archived."""
    with sqlite3.connect(home / "bythebook.db") as database:
        return dict(database.execute("SELECT thread_id, archived_at FROM threads"))


def _messages(home: Path) -> int:
    with sqlite3.connect(home / "bythebook.db") as database:
        [[count]] = database.execute("SELECT count(*) FROM thread_messages")
        return int(count)


# --- migration -------------------------------------------------------------------------------


def _open(home: Path, point: Point | None) -> None:
    if point is not None:
        point.arm()
    open_database(None, home)


def _kill_migrations(folder: Path, times: int, tally: Tally) -> int:
    """From the oldest revision, or from each, to the newest: a kill before and after each step."""
    known, kills = revisions(), 0
    for first in known[:-1] if FULL else known[:1]:
        made = folder / first
        engine = open_database(None, made)
        go(engine, first)
        before = fill(engine)
        engine.dispose()
        steps = [revision for revision in known if revision > first]
        for point in [point for step in steps for point in _steps(step)] * times:
            home = folder / "copy"
            shutil.copytree(made, home)
            assert not survived(started(_open, home, point)), f"never came {point}"
            with sqlite3.connect(home / "bythebook.db") as database:
                [[revision]] = database.execute("SELECT version_num FROM alembic_version")
            tally.torn += revision not in (first, HEAD)
            engine = open_database(None, home)
            tally.lost += lost(before, content(engine))
            engine.dispose()
            shutil.rmtree(home)
            kills += 1
        tally.acknowledged += sum(map(len, before.values()))
    return kills


def _steps(revision: str) -> list[Point]:
    from bythebook.providers.sql.migrations import versions

    [file] = Path(versions.__path__[0]).glob(f"{revision}_*.py")
    return around("upgrade", file=file.name)
