"""Daily token budget.

The maximum cost of a call is reserved before it is made, and the actual cost is settled
afterwards, so that any number of concurrent calls stay within the daily limit. The counts per day
(UTC) are kept in a file: all workers on a machine share them, and a restart does not reset them.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bythebook.errors import DatabaseFailed
from bythebook.providers.http.errors import ErrorCode, ProviderError
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.types import Usage

_log = logging.getLogger(__name__)

_BUSY_S = 2.5
_DEADLINE_S = 3.0


def _today() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def within_budget(
    budget: Budget | None, most: int, spent: Callable[[], Usage]
) -> AsyncIterator[None]:
    """Reserve ``most`` tokens for a call, and settle with the actual usage at its end."""
    if budget is None:
        yield
        return
    day = await budget.reserve(most)
    try:
        yield
    finally:
        usage = spent()
        await budget.settle(day, most, usage.prompt_tokens + usage.completion_tokens)


class Budget:
    def __init__(self, file: Path, daily: int, *, now: Callable[[], datetime] = _today) -> None:
        self._file = file
        self._daily = daily
        self._now = now
        self._executor = DeadlineExecutor(1, deadline_s=_DEADLINE_S)

    async def reserve(self, tokens: int) -> str:
        """Reserve tokens and return the day they count for; raise if over budget."""
        now = self._now()
        day = f"{now:%Y-%m-%d}"
        try:
            reserved = await self._executor.run(lambda: self._reserve(day, tokens))
        except DatabaseFailed:  # without a count, nothing may be spent
            raise ProviderError(ErrorCode.UNCOUNTED) from None
        if not reserved:
            midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
            raise ProviderError(ErrorCode.OVER_BUDGET, retry_after=(midnight - now).total_seconds())
        return day

    async def settle(self, day: str, reserved: int, spent: int) -> None:
        try:
            await self._executor.run(lambda: self._add(day, spent - reserved))
        except DatabaseFailed:
            _log.warning(
                "today's token count was not updated: %d reserved tokens stay counted", reserved
            )

    async def spent(self) -> int:
        """Return today's tokens, including reservations."""
        day = f"{self._now():%Y-%m-%d}"
        return await self._executor.run(lambda: self._spent(day))

    async def close(self) -> None:
        self._executor.close()

    def _reserve(self, day: str, tokens: int) -> bool:
        with self._open() as database:
            database.execute("INSERT OR IGNORE INTO days (day, tokens) VALUES (?, 0)", [day])
            taken = database.execute(
                "UPDATE days SET tokens = tokens + ? WHERE day = ? AND tokens + ? <= ?",
                [tokens, day, tokens, self._daily],
            )
            return taken.rowcount == 1

    def _add(self, day: str, tokens: int) -> None:
        with self._open() as database:
            database.execute("UPDATE days SET tokens = tokens + ? WHERE day = ?", [tokens, day])

    def _spent(self, day: str) -> int:
        with self._open() as database:
            row = database.execute("SELECT tokens FROM days WHERE day = ?", [day]).fetchone()
        return int(row[0]) if row else 0

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction; it takes the write lock at once, to serialise spending."""
        try:
            database = sqlite3.connect(self._file, timeout=_BUSY_S, isolation_level=None)
            with closing(database):
                database.execute("BEGIN IMMEDIATE")
                database.execute(
                    "CREATE TABLE IF NOT EXISTS days (day TEXT PRIMARY KEY, tokens INTEGER)"
                )
                yield database
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise DatabaseFailed(
                "Today's tokens cannot be counted.", hint="Check the home folder."
            ) from error
