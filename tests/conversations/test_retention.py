"""Threads are archived when idle and deleted after their retention period."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from bythebook.conversations.retention import Archiver, Retention
from bythebook.errors import DatabaseFailed
from bythebook.providers.testing import MemoryQueryLog, MemoryThreads
from bythebook.types import Message, Role

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = _NOW

    def __call__(self) -> datetime:
        return self.now


def _exchange(when: datetime) -> list[Message]:
    return [Message(Role.USER, "Why?", when), Message(Role.ASSISTANT, "So.", when, 0.5)]


async def test_an_idle_thread_is_archived_and_a_message_resumes_it() -> None:
    clock, store = Clock(), MemoryThreads()
    archiver = Archiver(store, MemoryQueryLog(), clock=clock)
    await store.append("a", _exchange(_NOW), owner=None)
    clock.now = _NOW + timedelta(hours=1)
    assert await archiver.archive() == 0  # chat: more than an hour
    clock.now += timedelta(seconds=1)
    assert await archiver.archive() == 1
    assert await archiver.archive() == 0
    await store.append("a", _exchange(clock.now), owner=None)
    assert await archiver.archive() == 0
    clock.now += timedelta(hours=2)
    assert (await archiver.sweep()).threads_archived == 1


async def test_a_sweep_deletes_only_what_exceeds_the_retention_period() -> None:
    clock, store = Clock(), MemoryThreads()
    await store.append("a", _exchange(_NOW), owner=None)
    clock.now = _NOW + timedelta(days=400)
    assert (await Archiver(store, MemoryQueryLog(), clock=clock).sweep()).threads_purged == 0
    retention = Retention(threads=timedelta(days=399))
    archiver = Archiver(store, MemoryQueryLog(), retention=retention, clock=clock)
    assert (await archiver.sweep()).threads_purged == 1


async def test_one_worker_runs_each_sweep_and_continues_after_a_failure() -> None:
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
        async with asyncio.timeout(30):
            while len(rounds) < number:  # noqa: ASYNC110 - the archiver tells nobody
                await asyncio.sleep(0.001)
        for _ in range(20):  # all of them look again, and none finds it due
            await asyncio.sleep(0.002)
        assert len(rounds) == number
        clock.now += every
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)
