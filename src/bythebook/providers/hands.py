"""Blocking work in; its result in time, or DatabaseFailed, out.

A database may hang, and a thread that waits for it cannot be stopped. So a few threads of their
own do all the waiting: at most so many are lost for a while, no other work stands behind them,
and as daemons they do not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from bythebook.errors import DatabaseFailed

T = TypeVar("T")

_IN_LINE = 5  # deadlines that work waits at most, behind other work that gets done

_Work = tuple["Future[Any]", Callable[[], Any], threading.Event]


class Abandoned(Exception):
    """Nobody waits for this work any more: whatever it began must not be committed."""


class Hands:
    """While half of them are held up by work that came too late, new work fails at once."""

    def __init__(self, count: int = 4, *, deadline_s: float) -> None:
        self._count = count
        self._deadline_s = deadline_s
        self._work: SimpleQueue[_Work | None] = SimpleQueue()  # None: one of them may go
        self._started = 0
        self._running: set[threading.Event] = set()  # of each work at hand: was it abandoned?
        self._current = threading.local()
        self._done_at = 0.0  # when the last work was done that somebody still wanted

    async def do(self, work: Callable[[], T], *, patience: float = 1) -> T:
        """What the work returns, unless the deadline passes first, or so many of them.

        As long as other work gets done, the database is busy and not gone: who stands in line
        then waits a few deadlines.
        """
        if 2 * self._held_up() >= self._count:
            raise _late()
        future: Future[T] = Future()
        abandoned = threading.Event()
        self._work.put((future, work, abandoned))
        self._start_one_more()
        waiting = asyncio.wrap_future(future)
        try:
            if await self._in_time(waiting, patience * self._deadline_s):
                return waiting.result()
        finally:
            if not waiting.done():
                abandoned.set()
                waiting.cancel()
            elif not waiting.cancelled():
                waiting.exception()  # looked at, also where whoever asked has just left
        raise _late()

    async def _in_time(self, waiting: asyncio.Future[T], deadline_s: float) -> bool:
        asked = time.monotonic()
        while not waiting.done():
            alive = min(max(asked, self._done_at), asked + (_IN_LINE - 1) * deadline_s)
            left = alive + deadline_s - time.monotonic()
            if left <= 0:
                return False
            await asyncio.wait([waiting], timeout=left)
        return True

    def check_wanted(self) -> None:
        """Called by the work just before it commits."""
        abandoned: threading.Event | None = getattr(self._current, "abandoned", None)
        if abandoned is not None and abandoned.is_set():
            raise Abandoned

    def close(self) -> None:
        """Let them go; more work would bring new ones."""
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
            del future, work, taken  # what the work brought is not kept until the next one


def _late() -> DatabaseFailed:
    return DatabaseFailed(
        "The database did not answer in time.", cure="Check DATABASE_URL or the home folder."
    )
