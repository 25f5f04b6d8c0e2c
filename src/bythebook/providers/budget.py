"""Tokens about to be spent in; leave to spend them, or a ``Fault``, out.

What a call may cost at most is set aside before it is made, and what it did cost is booked
afterwards, so that any number of calls at once stay within the day's tokens. The days (UTC) are
kept in a file: the workers of a machine share them, and a restart does not begin a new day.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bythebook.errors import DatabaseFailed
from bythebook.providers.faults import Fault, Kind
from bythebook.providers.hands import Hands

_log = logging.getLogger(__name__)

_BUSY_S = 2.5
_DEADLINE_S = 3.0


def _today() -> datetime:
    return datetime.now(UTC)


class Budget:
    def __init__(self, file: Path, daily: int, *, now: Callable[[], datetime] = _today) -> None:
        self._file = file
        self._daily = daily
        self._now = now
        self._hands = Hands(1, deadline_s=_DEADLINE_S)

    async def reserve(self, tokens: int) -> str:
        """Set tokens aside; the day that they are of."""
        now = self._now()
        day = f"{now:%Y-%m-%d}"
        try:
            reserved = await self._hands.do(lambda: self._reserve(day, tokens))
        except DatabaseFailed:  # what cannot be counted is not spent
            raise Fault(Kind.UNCOUNTED) from None
        if not reserved:
            midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
            raise Fault(Kind.OVER_BUDGET, retry_after=(midnight - now).total_seconds())
        return day

    async def settle(self, day: str, reserved: int, spent: int) -> None:
        try:
            await self._hands.do(lambda: self._add(day, spent - reserved))
        except DatabaseFailed:
            _log.warning("%d tokens set aside for a call stay booked: not counted", reserved)

    async def spent(self) -> int:
        """Today's, with what is set aside."""
        day = f"{self._now():%Y-%m-%d}"
        return await self._hands.do(lambda: self._spent(day))

    async def close(self) -> None:
        self._hands.close()

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
        """One transaction: it writes first, so that whoever spends stands in line."""
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
                "The tokens spent today cannot be counted.", cure="Check the home folder."
            ) from error
