"""Rate-limit counts of the last minute in SQL: the table ``rate_windows``."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

import sqlalchemy as sa

from bythebook.interfaces.access import RateCount
from bythebook.providers.sql.engine import SqlStore, insert, on_database_thread
from bythebook.providers.sql.schema import rate_windows


class SqlCounter(SqlStore):
    """Moving-window counter; one row holds the times of all allowed hits in a window."""

    def __init__(
        self, engine: sa.Engine, *, clock: Callable[[], float] = time.time, deadline_s: float = 3.0
    ) -> None:
        # SQLite lets waiting writers starve, so only one thread per process waits for it.
        threads = 1 if engine.dialect.name == "sqlite" else 8
        super().__init__(engine, threads=threads, deadline_s=deadline_s)
        self._clock = clock

    @on_database_thread()
    def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        column = rate_windows.c
        with self._engine.begin() as connection:
            _lock_row(connection, key)
            now = self._clock()
            row = sa.select(column.hits).where(column.key == key)
            hits = array("d", connection.execute(row).scalar_one())
            live = [hit for hit in hits if hit > now - seconds]
            allowed = len(live) < limit
            if allowed:
                live.append(now)
                values = {"hits": array("d", live).tobytes(), "expires_at": now + seconds}
                connection.execute(sa.update(rate_windows).where(column.key == key).values(values))
            if self._is_sweep_due(now):
                connection.execute(sa.delete(rate_windows).where(column.expires_at < now))
        return RateCount(allowed, limit - len(live), min(live) + seconds - now)


def _lock_row(connection: sa.Connection, key: str) -> None:
    """Lock the key's row by writing first, which serialises all counters on either database."""
    new = insert(connection, rate_windows).values(key=key, hits=b"", expires_at=0.0)
    same = {"key": new.excluded.key}
    connection.execute(new.on_conflict_do_update(index_elements=["key"], set_=same))
