"""Threads survive the death of their writer, of the archiver and of PostgreSQL."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from tests.support.databases import Postgres, address, running_postgres
from tests.support.samples import read

from bythebook.conversations.retention import BATCH, Archiver
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.schema import messages, metadata, threads
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Message, Role
from reliability.crash import started
from reliability.readers import LocalReader, is_ready, library_on, open_for_readers
from reliability.rows import Row


def _write_messages(home: Path, begin: int, acknowledged: Connection) -> None:
    async def talk() -> None:
        threads = SqlThreads(open_database(None, home), deadline_s=60)
        number = begin
        while True:
            now = datetime.now(UTC)
            question = Message(Role.USER, f"{number}", now)
            answer = Message(Role.ASSISTANT, f"{number}", now, 0.5)
            await threads.append(f"thread {number % 3}", [question, answer], owner=None)
            acknowledged.send(number)
            number += 1

    asyncio.run(talk())


def _drain(pipe: Connection) -> list[int]:
    numbers = []
    try:
        while pipe.poll():
            numbers.append(pipe.recv())
    except EOFError:
        pass
    return numbers


class Kept:
    """What the file contains after a kill."""

    def __init__(self, home: Path) -> None:
        with sqlite3.connect(home / "bythebook.db") as database:
            self.damaged = database.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
            rows = database.execute(
                "SELECT thread_id, seq, role, content FROM thread_messages ORDER BY thread_id, seq"
            ).fetchall()
        said = [int(row[3]) for row in rows if row[2] == "user"]
        self.numbers = set(said)
        self.doubled = len(said) - len(self.numbers)
        threads = [[row for row in rows if row[0] == name] for name in {row[0] for row in rows}]
        self.torn = sum(not _is_whole(mine) for mine in threads)


def _is_whole(mine: list[tuple[str, int, str, str]]) -> bool:
    """Return whether messages are numbered without gaps and each question is followed by its
    answer.
    """
    said = [int(row[3]) for row in mine]
    return (
        [row[1] for row in mine] == list(range(len(mine)))
        and [row[2] for row in mine] == ["user", "assistant"] * (len(mine) // 2)
        and said == sorted(said)
        and said[::2] == said[1::2]
    )


@pytest.mark.row(
    "R6",
    "Kill the process that writes threads to SQLite",
    "0 lost, 0 torn, 0 doubled messages; integrity_check ok",
)
def test_kills_while_messages_are_written(row: Row, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, begin, kills = random.Random(seed), 0, row.count(15, 100)
    acknowledged: set[int] = set()
    lost = torn = doubled = damaged = 0
    for _ in range(kills):
        ours, theirs = get_context("forkserver").Pipe(duplex=False)
        process = started(_write_messages, tmp_path, begin, theirs)
        theirs.close()
        assert ours.poll(60), "the first message was not acknowledged"
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.join(60)
        acknowledged.update(_drain(ours))
        ours.close()
        kept = Kept(tmp_path)
        lost += len(acknowledged - kept.numbers)
        torn, doubled, damaged = torn + kept.torn, doubled + kept.doubled, damaged + kept.damaged
        begin = max(kept.numbers) + 1
    row.record(
        f"{kills} SIGKILLs in WAL with synchronous FULL, {2 * len(acknowledged):,} messages "
        "acknowledged",
        f"{lost} lost, {torn} torn, {doubled} doubled; integrity_check ok {kills - damaged} times",
        passed=not (lost or torn or doubled or damaged),
    )


_READERS = 4
_RECOVERS_S = 5.0


@pytest.mark.real
@pytest.mark.row(
    "R7",
    "Kill PostgreSQL under load",
    "0 acknowledged messages lost, 0 errors, threads stored again ≤ 5 s after it is back",
)
async def test_kills_under_load(row: Row, book_folder: Path, tmp_path: Path) -> None:
    kills, slowest, lost, invented = row.count(3, 10), 0.0, 0, 0
    with running_postgres() as server:
        library = library_on(server.new_database(), tmp_path, deadline_s=1.0)
        await library.ingest(read(book_folder))
        async with open_for_readers(library) as client:
            readers = [LocalReader(client) for _ in range(_READERS)]
            await _until(readers[0].talk)
            stop = asyncio.Event()
            load = [asyncio.create_task(_keep_talking(reader, stop)) for reader in readers]
            for _ in range(kills):
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
                slowest = max(slowest, await _until(LocalReader(client).talk))
            stop.set()
            await asyncio.gather(*load)
            await _until(lambda: is_ready(client))
            for reader in readers:
                thread = await library.threads.read(reader.session, owner=None, whole=True)
                stored = len(thread.messages) // 2 if thread else 0
                lost += max(0, reader.kept - stored)
                # A commit whose acknowledgement was lost may be there as well.
                invented += max(0, stored - reader.asked)
    asked, failed = sum(r.asked for r in readers), sum(r.failed + r.wrong for r in readers)
    kept = sum(reader.kept for reader in readers)
    row.record(
        f"{kills} SIGKILLs of the postmaster under {_READERS} readers, {asked:,} questions, "
        f"{kept:,} exchanges acknowledged",
        f"{lost} lost, {invented} invented, {failed} errors or wrong answers; kept again after "
        f"{slowest:.1f} s at most",
        passed=not (lost or invented or failed) and slowest <= _RECOVERS_S,
    )


async def _keep_talking(reader: LocalReader, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await reader.talk()
        await asyncio.sleep(0.001)


async def _until(does: Callable[[], Awaitable[bool]], seconds: float = 30) -> float:
    """Return how long it takes until the condition holds."""
    began = time.monotonic()
    while not await does():
        assert time.monotonic() - began < seconds
        await asyncio.sleep(0.05)
    return time.monotonic() - began


_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_LONGEST_LOCK_S = 0.05
_FIRST, _SECOND = _NOW + timedelta(hours=2), _NOW + timedelta(hours=3)


class Crash(Exception):
    pass


class CrashingThreads(SqlThreads):
    """Store that crashes in the n-th batch, before or after its commit."""

    def __init__(self, engine: sa.Engine, *, at: int, committed: bool) -> None:
        super().__init__(engine, deadline_s=60)
        self._left, self._committed = at, committed

    async def archive(self, **when: object) -> int:  # type: ignore[override]
        self._left -= 1
        if self._left or self._committed:
            done = await super().archive(**when)  # type: ignore[arg-type]
        if not self._left:
            raise Crash
        return done


def _fill(engine: sa.Engine, count: int) -> None:
    names = [str(uuid.UUID(int=n, version=4)) for n in range(count)]
    when = {"created_at": _NOW, "updated_at": _NOW}
    said = {"seq": 0, "role": "user", "content": "Why?", "timestamp": _NOW}
    with engine.begin() as connection:
        rows = [{"thread_id": name, **when, "metadata": {}} for name in names]
        connection.execute(sa.insert(threads), rows)
        connection.execute(sa.insert(messages), [{"thread_id": n, **said} for n in names])


async def _not_once(engine: sa.Engine, count: int, *, committed: bool) -> int:
    """Crash, then sweep again; return threads not archived by exactly one of the two."""
    log = SqlQueryLog(engine, deadline_s=60)
    crashing = CrashingThreads(engine, at=count // BATCH // 2, committed=committed)
    with pytest.raises(Crash):
        await Archiver(crashing, log, clock=lambda: _FIRST).archive()
    store = SqlThreads(engine, deadline_s=60)
    rest = await Archiver(store, log, clock=lambda: _SECOND).archive()
    assert 0 < rest < count
    with engine.connect() as connection:
        query = sa.select(threads.c.archived_at, sa.func.count()).group_by(threads.c.archived_at)
        found = {moment.replace(tzinfo=UTC): count for moment, count in connection.execute(query)}
    return abs(found[_FIRST] - (count - rest)) + abs(found[_SECOND] - rest) + (len(found) - 2)


async def _batches(engine: sa.Engine) -> list[float]:
    """Return how long each batch held its lock at most."""
    store = SqlThreads(engine, deadline_s=60)
    taken, done = [], 1
    while done:
        began = time.perf_counter()
        done = await store.archive(before=_NOW + timedelta(hours=1), now=_FIRST, limit=BATCH)
        taken.append(time.perf_counter() - began)
    return taken


def _empty(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.delete(messages))
        connection.execute(sa.delete(threads))


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R21",
    "Crash the archiver while it works",
    "each thread archived exactly once, no lock over 50 ms",
)
async def test_each_is_archived_once_and_nobody_waits(
    row: Row, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count, not_once = row.count(2000, 10_000), 0
    slowest: dict[str, float] = {}
    for kind in ("sqlite", "postgres"):
        engine = open_database(address(kind, tmp_path, request), tmp_path)
        for committed in (False, True):
            _fill(engine, count)
            not_once += await _not_once(engine, count, committed=committed)
            _empty(engine)
        rounds = []
        for _ in range(3):
            _fill(engine, count)
            rounds.append(await _batches(engine))
            _empty(engine)
        # Each batch in its calmest round: what takes long by itself does so in every one.
        slowest[kind] = max(map(min, zip(*rounds, strict=True)))
        engine.dispose()
    row.record(
        f"{count} idle threads, an hour later by a clock of our own, a crash before and one after "
        "a commit, on SQLite and on PostgreSQL",
        f"{not_once} not archived exactly once; the longest lock "
        + ", ".join(f"{seconds * 1000:.0f} ms on {kind}" for kind, seconds in slowest.items()),
        passed=not not_once and max(slowest.values()) < _LONGEST_LOCK_S,
    )


_WORKERS = 4


@pytest.mark.real
@pytest.mark.row(
    "R25",
    "Open a new database from several workers at once",
    "one creates the schema, the others wait; 0 failures, 0 differences from the schema in use",
)
def test_workers_that_start_together(row: Row, tmp_path: Path, postgres: Postgres) -> None:
    times, failures, differences = row.count(2, 20), 0, 0
    for number in range(times):
        for url in (None, postgres.new_database()):
            home = tmp_path / str(number)
            failures += _started_together(url, home)
            engine = open_database(url, home)
            differences += _differences(engine)
            engine.dispose()
    row.record(
        f"{_WORKERS} workers that start together, {times} times each on SQLite and PostgreSQL",
        f"{failures} failures, {differences} differences from the schema in use",
        passed=not (failures or differences),
    )


def _differences(engine: sa.Engine) -> int:
    """Return differences between the migrated schema and the schema in the code."""
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)
    # Alembic cannot read back a descending index of SQLite; PostgreSQL's say whether it is there.
    unsure = engine.dialect.name == "sqlite"
    return len([each for each in found if not (unsure and "index" in str(each[0]))])


def _started_together(address: str | None, home: Path) -> int:
    """Start workers at once; one migrates, the others wait. Return how many failed."""
    failed: list[Exception] = []

    def start() -> None:
        try:
            open_database(address, home).dispose()
        except Exception as error:
            failed.append(error)

    workers = [threading.Thread(target=start) for _ in range(_WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(failed)
