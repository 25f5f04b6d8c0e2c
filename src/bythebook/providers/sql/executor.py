"""Thread pool for blocking database calls with a deadline.

A database may hang, and a thread that waits for it cannot be stopped. So a few dedicated threads do
all the waiting: at most that many are blocked, no other work queues behind them, and as daemon
threads they do not keep the process from exiting.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from bythebook.errors import RETRY_AFTER_S, DatabaseFailed

T = TypeVar("T")

_QUEUED = 5  # maximum wait, in deadlines, while other work still completes

_Work = tuple["Future[Any]", Callable[[], Any], threading.Event]


class Abandoned(Exception):
    """Raised in work whose caller has given up: its transaction must not be committed."""


class DeadlineExecutor:
    """Executor whose calls time out; it fails fast while half its threads run abandoned work."""

    def __init__(self, count: int = 4, *, deadline_s: float) -> None:
        self._count = count
        self._deadline_s = deadline_s
        self._work: SimpleQueue[_Work | None] = SimpleQueue()  # None: stop one thread
        self._started = 0
        self._running: set[threading.Event] = set()  # per running work: was it abandoned?
        self._current = threading.local()
        self._done_at = 0.0  # when work that was not abandoned last completed

    async def run(self, work: Callable[[], T], *, deadlines: float = 1) -> T:
        """Return the work's result; raise DatabaseFailed after so many deadlines.

        While other work completes, the database is busy rather than unreachable, and queued work
        waits up to ``_QUEUED`` times as long.
        """
        if 2 * self._held_up() >= self._count:
            raise _late()
        future: Future[T] = Future()
        abandoned = threading.Event()
        self._work.put((future, work, abandoned))
        self._start_one_more()
        waiting = asyncio.wrap_future(future)
        try:
            if await self._in_time(waiting, deadlines * self._deadline_s):
                return waiting.result()
        finally:
            if not waiting.done():
                abandoned.set()
                waiting.cancel()
            elif not waiting.cancelled():
                waiting.exception()  # mark as retrieved, even if the caller was just cancelled
        raise _late()

    async def _in_time(self, waiting: asyncio.Future[T], deadline_s: float) -> bool:
        called_at = time.monotonic()
        while not waiting.done():
            alive_at = min(max(called_at, self._done_at), called_at + (_QUEUED - 1) * deadline_s)
            left = alive_at + deadline_s - time.monotonic()
            if left <= 0:
                return False
            await asyncio.wait([waiting], timeout=left)
        return True

    def check_wanted(self) -> None:
        """Raise Abandoned if the caller has given up; called by the work just before it commits."""
        abandoned: threading.Event | None = getattr(self._current, "abandoned", None)
        if abandoned is not None and abandoned.is_set():
            raise Abandoned

    def close(self) -> None:
        """Stop the threads; later work would start new ones."""
        for _ in range(self._started):
            self._work.put(None)
        self._started = 0

    def _held_up(self) -> int:
        return sum(abandoned.is_set() for abandoned in tuple(self._running))

    def _start_one_more(self) -> None:
        if self._started < self._count:
            self._started += 1
            threading.Thread(target=self._run, name="database", daemon=True).start()

    def _run(self) -> None:
        while (taken := self._work.get()) is not None:
            future, work, abandoned = taken
            if not future.set_running_or_notify_cancel():
                continue
            self._current.abandoned = abandoned
            self._running.add(abandoned)
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                self._running.discard(abandoned)
                if not abandoned.is_set():
                    self._done_at = time.monotonic()
            del future, work, taken  # do not keep the result alive until the next work


def _late() -> DatabaseFailed:
    return DatabaseFailed(
        "The database did not answer in time.",
        hint="Check DATABASE_URL or the home folder.",
        retry_after=RETRY_AFTER_S,
    )
