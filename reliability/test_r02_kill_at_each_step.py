"""Kill ingest, publication, archiving and migration at every step that writes."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers import Node

from bythebook.conversations.retention import BATCH, Archiver, Retention
from bythebook.ingestion.ingest import SourceManifest
from bythebook.providers import flat_index
from bythebook.providers.flat_index import FlatGenerationStore
from bythebook.providers.qdrant import server
from bythebook.providers.qdrant.server import ServerGenerationStore
from bythebook.providers.sql import catalog
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.schema import HEAD
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Message, Role
from reliability.crash import (
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
from reliability.rows import FULL, Rows
from reliability.schema import content, fill, go, lost, revisions


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
    *around(flat_index._write_postings),
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
def test_kills_at_named_points(rows: Rows, tmp_path: Path, qdrant_server: list[Node]) -> None:
    row = rows.add(
        "R2",
        "Kill ingest, archive and migration at each writing step",
        requirement="0 lost, 0 mixed books, 0 duplicates, 0 orphans at every step",
    )
    times = rows.count(1, 5)
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


# --- migration -------------------------------------------------------------------------------


def _open(home: Path, point: Point | None) -> None:
    if point is not None:
        point.arm()
    open_database(None, home)


def _kill_migrations(folder: Path, times: int, tally: Tally) -> int:
    """Migrate from an empty database (and from each revision) to the newest, with a kill before
    and after each step.
    """
    known, kills = revisions(), 0
    for first in ("base", *known[:-1]) if FULL else ("base",):
        made = folder / first
        engine = open_database(None, made)
        go(engine, "base")
        go(engine, first)
        before = fill(engine)
        engine.dispose()
        steps = [revision for revision in known if first == "base" or revision > first]
        for point in [point for step in steps for point in _steps(step)] * times:
            home = folder / "copy"
            shutil.copytree(made, home)
            assert not survived(started(_open, home, point)), f"not reached: {point}"
            with sqlite3.connect(home / "bythebook.db") as database:
                found = database.execute("SELECT version_num FROM alembic_version").fetchall()
            tally.torn += found not in ([], [(first,)], [(HEAD,)])
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
    upgrade = Point("upgrade", str(file))
    return [upgrade, replace(upgrade, after=True)]
