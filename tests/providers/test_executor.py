"""Work that exceeds the deadline fails for its caller only."""

import asyncio
import gc
import threading
import time

import pytest

from bythebook.errors import DatabaseFailed, NotFound
from bythebook.providers.sql.executor import Abandoned, DeadlineExecutor


async def test_work_within_the_deadline_returns_or_raises() -> None:
    executor = DeadlineExecutor(deadline_s=60)

    def fail() -> None:
        raise NotFound("There is none.")

    assert await executor.run(lambda: 42) == 42
    with pytest.raises(NotFound):
        await executor.run(fail)
    executor.close()
    assert await executor.run(lambda: 43) == 43


async def test_calls_fail_fast_while_the_database_hangs() -> None:
    executor, released = DeadlineExecutor(4, deadline_s=0.05), threading.Event()
    late = [executor.run(released.wait) for _ in range(20)]
    outcomes = await asyncio.gather(*late, return_exceptions=True)
    assert all(isinstance(outcome, DatabaseFailed) for outcome in outcomes)
    with pytest.raises(DatabaseFailed, match="in time") as failure:
        await executor.run(lambda: pytest.fail("no thread is free for this"))
    assert failure.value.retry_after is not None
    released.set()
    await _until_back(executor)


async def _until_back(executor: DeadlineExecutor) -> None:
    for _ in range(5000):
        try:
            assert await executor.run(lambda: "back") == "back"
            return
        except DatabaseFailed:
            await asyncio.sleep(0.01)
    pytest.fail("the threads did not come back")


async def test_queued_work_waits_while_other_work_completes() -> None:
    executor = DeadlineExecutor(1, deadline_s=1.5)
    done: list[float] = []

    def work() -> None:
        time.sleep(0.1)
        done.append(time.monotonic())

    await asyncio.gather(*(executor.run(work) for _ in range(20)))
    assert len(done) == 20
    assert done[-1] - done[0] > 1.5  # longer than the deadline of each


async def test_abandoned_work_is_not_committed() -> None:
    executor, released = DeadlineExecutor(deadline_s=0.05), threading.Event()
    outcome: list[str] = []
    ended = threading.Event()

    def work() -> None:
        released.wait()
        try:
            executor.check_wanted()
            outcome.append("committed")
        except Abandoned:
            outcome.append("rolled back")
        ended.set()

    with pytest.raises(DatabaseFailed):
        await executor.run(work)
    released.set()
    await asyncio.to_thread(ended.wait)
    assert outcome == ["rolled back"]


async def test_the_failure_of_cancelled_work_is_not_reported() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    executor, begun, go = DeadlineExecutor(1, deadline_s=60), threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        go.wait()
        raise DatabaseFailed("It is gone.")

    leaving = asyncio.create_task(executor.run(fail))
    await asyncio.to_thread(begun.wait)
    go.set()
    time.sleep(0.1)  # noqa: ASYNC251 - the failure arrives while nobody can look at it
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    del leaving
    gc.collect()
    await asyncio.sleep(0)
    assert not reported
    executor.close()
