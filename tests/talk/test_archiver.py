"""Idle conversations are archived once, whatever happens meanwhile, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from bythebook.errors import DatabaseFailed
from bythebook.model import Message, Role
from bythebook.providers.fake import MemoryQueryLog, MemoryThreads
from bythebook.providers.sql import open_database
from bythebook.providers.sql_log import SqlQueryLog
from bythebook.providers.sql_threads import SqlThreads
from bythebook.providers.tables import messages, threads
from bythebook.talk.archiver import BATCH, Archiver, Retention
from tests.databases import POSTGRES, address

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_MANY = int(os.environ.get("BYTHEBOOK_THREADS", "10000"))


class Clock:
    def __init__(self) -> None:
        self.now = _NOW

    def __call__(self) -> datetime:
        return self.now


def _exchange(when: datetime) -> list[Message]:
    return [Message(Role.USER, "Why?", when), Message(Role.ASSISTANT, "So.", when, 0.5)]


async def test_an_hour_without_a_message_archives_and_a_message_resumes() -> None:
    clock, store = Clock(), MemoryThreads()
    archiver = Archiver(store, MemoryQueryLog(), clock=clock)
    await store.append("a", _exchange(_NOW), owner=None)
    clock.now = _NOW + timedelta(hours=1)
    assert await archiver.archive() == 0  # S4: more than an hour
    clock.now += timedelta(seconds=1)
    assert await archiver.archive() == 1
    assert await archiver.archive() == 0
    await store.append("a", _exchange(clock.now), owner=None)
    assert await archiver.archive() == 0
    clock.now += timedelta(hours=2)
    assert (await archiver.sweep()).threads_archived == 1


async def test_a_round_deletes_only_what_the_settings_keep_no_longer() -> None:
    clock, store = Clock(), MemoryThreads()
    await store.append("a", _exchange(_NOW), owner=None)
    clock.now = _NOW + timedelta(days=400)
    assert (await Archiver(store, MemoryQueryLog(), clock=clock).sweep()).threads_purged == 0
    retention = Retention(threads=timedelta(days=399))
    archiver = Archiver(store, MemoryQueryLog(), retention=retention, clock=clock)
    assert (await archiver.sweep()).threads_purged == 1


async def test_of_several_workers_one_does_each_round_and_goes_on_after_a_failure() -> None:
    rounds: list[int] = []

    class Store(MemoryThreads):
        async def archive(self, **kwargs: object) -> int:
            rounds.append(len(rounds))
            if len(rounds) == 1:
                raise DatabaseFailed("The database did not answer.")
            return 0

    store, clock, every = Store(), Clock(), timedelta(milliseconds=1)
    workers = [
        asyncio.create_task(Archiver(store, MemoryQueryLog(), every=every, clock=clock).run())
        for _ in range(3)
    ]
    for number in range(1, 4):
        await asyncio.sleep(0.05)  # all of them look, and one finds it due
        assert len(rounds) == number
        clock.now += every
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)


class Crash(Exception):
    pass


class CrashingThreads(SqlThreads):
    """Dies in the middle of the n-th batch, before or after its commit."""

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


@pytest.fixture(params=["sqlite", POSTGRES])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[sa.Engine]:
    engine = open_database(address(request.param, tmp_path, request), tmp_path)
    yield engine
    engine.dispose()


def _fill(engine: sa.Engine, count: int) -> None:
    names = [str(uuid.UUID(int=n, version=4)) for n in range(count)]
    when = {"created_at": _NOW, "updated_at": _NOW}
    said = {"seq": 0, "role": "user", "content": "Why?", "timestamp": _NOW}
    with engine.begin() as connection:
        rows = [{"thread_id": name, **when, "metadata": {}} for name in names]
        connection.execute(sa.insert(threads), rows)
        connection.execute(sa.insert(messages), [{"thread_id": n, **said} for n in names])


@pytest.mark.parametrize("committed", [False, True])
async def test_a_crash_in_the_middle_leaves_the_rest_to_the_next_round(
    engine: sa.Engine, committed: bool
) -> None:
    _fill(engine, _MANY)
    clock, log = Clock(), SqlQueryLog(engine, deadline_s=60)
    first, second = _NOW + timedelta(hours=2), _NOW + timedelta(hours=3)
    clock.now = first
    crashing = CrashingThreads(engine, at=_MANY // BATCH // 2, committed=committed)
    with pytest.raises(Crash):
        await Archiver(crashing, log, clock=clock).archive()
    clock.now = second
    store = SqlThreads(engine, deadline_s=60)
    rest = await Archiver(store, log, clock=clock).archive()
    with engine.connect() as connection:
        query = sa.select(threads.c.archived_at, sa.func.count()).group_by(threads.c.archived_at)
        found = {moment.replace(tzinfo=UTC): count for moment, count in connection.execute(query)}
    assert found == {first: _MANY - rest, second: rest}  # each once, in the round that took it
    assert 0 < rest < _MANY


async def test_nobody_waits_long_for_the_archiver(engine: sa.Engine) -> None:
    _fill(engine, _MANY)
    store = SqlThreads(engine, deadline_s=60)
    when = {"before": _NOW + timedelta(hours=1), "now": _NOW + timedelta(hours=2)}
    taken: list[float] = []
    done = 1
    while done:
        began = time.perf_counter()
        done = await store.archive(**when, limit=BATCH)
        taken.append(time.perf_counter() - began)
    taken.sort()
    print(f"batches: median {taken[len(taken) // 2]:.4f} s, slowest {taken[-1]:.4f} s")
    # The machine may be busy now and then; most of the time it is not.
    assert taken[len(taken) // 2] < 0.05
