"""Retention: archive idle threads, and delete threads and logged queries after their period.

One worker at a time runs it. Each batch is a short transaction of its own, so that it blocks no
request, and so that after a crash the next run continues without duplicates.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from bythebook.conversations.session import Clock, now
from bythebook.errors import DatabaseFailed

if TYPE_CHECKING:
    from bythebook.providers.sql.query_log import SqlFeedback, SqlQueryLog
    from bythebook.providers.sql.threads import SqlThreads

_log = logging.getLogger(__name__)

_CHORE = "archive"
BATCH = 50  # threads: locks are held for a few milliseconds only


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention periods."""

    idle: timedelta = timedelta(hours=1)  # chat: "Threads inactive for >1 hour"
    queries: timedelta = timedelta(days=90)
    threads: timedelta | None = None  # None: until they are deleted explicitly


@dataclass(frozen=True, slots=True)
class Swept:
    """Counts of one retention run."""

    threads_archived: int = 0
    threads_purged: int = 0
    queries_purged: int = 0


class Archiver:
    def __init__(
        self,
        threads: SqlThreads,
        log: SqlQueryLog,
        *,
        feedback: SqlFeedback | None = None,
        retention: Retention | None = None,
        every: timedelta = timedelta(minutes=1),
        clock: Clock = now,
    ) -> None:
        self._threads = threads
        self._log = log
        self._feedback = feedback
        self._retention = retention or Retention()
        self._every = every
        self._clock = clock

    async def run(self) -> None:
        """Run forever; each run is done by the worker that claims it first."""
        while True:
            try:
                if await self._threads.claim(_CHORE, now=self._clock(), every=self._every):
                    await self.sweep()
            except DatabaseFailed:
                _log.warning("threads were not archived: the database did not answer")
            await asyncio.sleep(self._every.total_seconds())

    async def sweep(self) -> Swept:
        archived = await self.archive()
        return replace(await self.purge(), threads_archived=archived)

    async def archive(self, *, only: str | None = None) -> int:
        """Archive all idle threads, or only the given one, idle or not."""
        moment = self._clock()
        before = moment if only else moment - self._retention.idle
        return await _in_batches(
            lambda: self._threads.archive(before=before, now=moment, limit=BATCH, only=only)
        )

    async def purge(self, *, threads_older_than: timedelta | None = None) -> Swept:
        """Delete old logged queries, and old threads if an age is given or configured."""
        moment, keep = self._clock(), self._retention
        age = keep.threads if threads_older_than is None else threads_older_than
        threads = 0
        if age is not None:
            old = moment - age
            threads = await _in_batches(lambda: self._threads.purge(before=old, limit=BATCH))
        before = moment - keep.queries
        queries = await _in_batches(lambda: self._log.purge(before=before, limit=BATCH))
        if (feedback := self._feedback) is not None:  # same period as the queries it refers to
            await _in_batches(lambda: feedback.purge(before=before, limit=BATCH))
        return Swept(threads_purged=threads, queries_purged=queries)


async def _in_batches(one: Callable[[], Awaitable[int]]) -> int:
    """Repeat until a batch reports zero; return the total."""
    total = 0
    while done := await one():
        total += done
    return total
