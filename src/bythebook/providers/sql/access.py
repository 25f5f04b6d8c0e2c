"""API keys, rate-limit counts of the last minute and stored replies of the last day, in SQL."""

from __future__ import annotations

import asyncio
import secrets
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from bythebook.errors import DatabaseFailed
from bythebook.interfaces.access import (
    ABANDONED_S,
    KEPT_S,
    ApiKey,
    ClaimState,
    KeptReply,
    RateCount,
    ReplyClaim,
)
from bythebook.providers.sql import schema as tables
from bythebook.providers.sql.catalog import open_database
from bythebook.providers.sql.executor import DeadlineExecutor

Clock = Callable[[], float]

_SWEEP_S = 60
_DEADLINE_S = 3.0


def open_counts(url: str | None, home: Path) -> sa.Engine:
    """Return an engine for rate-limit counts and stored replies.

    Without a ``url`` they get a separate file: an ingest locks the home's database while it commits
    a book, and no request should wait for that to be counted.
    """
    if url is not None:
        return open_database(url, home)
    engine = sa.create_engine(f"sqlite:///{home / 'door.db'}")
    sa.event.listen(engine, "connect", _prepare_sqlite)
    with _translated(), engine.begin() as connection:
        for table in (tables.rate_windows, tables.kept_replies):
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
    return engine


def _prepare_sqlite(connection: Any, record: object) -> None:
    del record
    cursor = connection.cursor()
    # NORMAL: consistent after a power cut; only the last counts may be lost, which is harmless.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=2500"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise DatabaseFailed(
            "The database did not answer.", hint="Check DATABASE_URL or the home folder."
        ) from error


class SqlKeys:
    def __init__(self, engine: sa.Engine, *, deadline_s: float = _DEADLINE_S) -> None:
        self._engine = engine
        self._executor = DeadlineExecutor(2, deadline_s=deadline_s)

    async def add(self, key: ApiKey) -> None:
        await self._executor.do(lambda: self._add(key))

    async def all(self) -> list[ApiKey]:
        return await self._executor.do(self._all)

    async def revoke(self, key_id: str, at: datetime) -> bool:
        return await self._executor.do(lambda: self._revoke(key_id, at))

    async def close(self) -> None:
        self._executor.close()
        await asyncio.to_thread(self._engine.dispose)

    def _add(self, key: ApiKey) -> None:
        row = {**asdict(key), "origins": list(key.origins)}
        with _translated(), self._engine.begin() as connection:
            connection.execute(sa.insert(tables.api_keys), [row])

    def _all(self) -> list[ApiKey]:
        oldest_first = (tables.api_keys.c.created_at, tables.api_keys.c.id)
        query = sa.select(tables.api_keys).order_by(*oldest_first)
        with _translated(), self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(query)]

    def _revoke(self, key_id: str, at: datetime) -> bool:
        column = tables.api_keys.c
        found = sa.select(column.id).where(column.id == key_id)
        held = (column.id == key_id) & column.revoked_at.is_(None)
        with _translated(), self._engine.begin() as connection:
            connection.execute(sa.update(tables.api_keys).where(held).values(revoked_at=at))
            return connection.execute(found).first() is not None


def _key(row: Any) -> ApiKey:
    return ApiKey(
        id=row.id,
        digest=row.digest,
        label=row.label,
        created_at=_aware(row.created_at),
        origins=tuple(row.origins),
        revoked_at=_aware(row.revoked_at) if row.revoked_at else None,
    )


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite stores no time zone


class _Sweeper:
    """Timer that tells when expired rows are due for deletion."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self, now: float) -> bool:
        due = now >= self._next
        if due:
            self._next = now + _SWEEP_S
        return due


class SqlCounter:
    """Moving-window counter; one row holds the times of all allowed hits in a window."""

    def __init__(
        self, engine: sa.Engine, *, clock: Clock = time.time, deadline_s: float = _DEADLINE_S
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._sweeper = _Sweeper()
        # SQLite lets waiting writers starve, so only one thread per process waits for it.
        self._executor = DeadlineExecutor(
            1 if engine.dialect.name == "sqlite" else 8, deadline_s=deadline_s
        )

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        return await self._executor.do(lambda: self._take(key, limit, seconds))

    async def close(self) -> None:
        self._executor.close()
        await asyncio.to_thread(self._engine.dispose)

    def _take(self, key: str, limit: int, seconds: int) -> RateCount:
        with _translated(), self._engine.begin() as connection:
            self._lock_row(connection, key)
            now = self._clock()
            column = tables.rate_windows.c
            row = sa.select(column.hits).where(column.key == key)
            hits = array("d", connection.execute(row).scalar_one())
            live = [hit for hit in hits if hit > now - seconds]
            allowed = len(live) < limit
            if allowed:
                live.append(now)
                values = {"hits": array("d", live).tobytes(), "expires_at": now + seconds}
                update = sa.update(tables.rate_windows).where(column.key == key)
                connection.execute(update.values(values))
            if self._sweeper.is_due(now):
                connection.execute(sa.delete(tables.rate_windows).where(column.expires_at < now))
        return RateCount(allowed, limit - len(live), min(live) + seconds - now)

    def _lock_row(self, connection: sa.Connection, key: str) -> None:
        """Lock the key's row by writing first, which serialises all counters on either database."""
        new = _insert(connection, tables.rate_windows)
        new = new.values(key=key, hits=b"", expires_at=0.0)
        same = {"key": new.excluded.key}
        connection.execute(new.on_conflict_do_update(index_elements=["key"], set_=same))


class SqlReplies:
    def __init__(
        self, engine: sa.Engine, *, clock: Clock = time.time, deadline_s: float = _DEADLINE_S
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._sweeper = _Sweeper()
        self._executor = DeadlineExecutor(deadline_s=deadline_s)

    async def claim(self, key: str, fingerprint: str) -> ReplyClaim:
        return await self._executor.do(lambda: self._claim(key, fingerprint))

    async def hold(self, claims: Mapping[str, str]) -> None:
        await self._executor.do(lambda: self._change(claims, claimed_at=self._clock()))

    async def keep(self, key: str, token: str, reply: KeptReply) -> None:
        values = {"status": reply.status, "headers": reply.headers, "body": reply.body}
        await self._executor.do(lambda: self._change({key: token}, **values))

    async def release(self, key: str, token: str) -> None:
        await self._executor.do(lambda: self._release(key, token))

    async def close(self) -> None:
        self._executor.close()
        await asyncio.to_thread(self._engine.dispose)

    def _claim(self, key: str, fingerprint: str) -> ReplyClaim:
        column = tables.kept_replies.c
        now, token = self._clock(), secrets.token_hex(16)
        expired = column.claimed_at < now - KEPT_S
        abandoned = column.body.is_(None) & (column.claimed_at < now - ABANDONED_S)
        gone = expired | abandoned
        with _translated(), self._engine.begin() as connection:
            which = gone if self._sweeper.is_due(now) else gone & (column.key == key)
            connection.execute(sa.delete(tables.kept_replies).where(which))
            new = _insert(connection, tables.kept_replies)
            new = new.values(key=key, fingerprint=fingerprint, token=token, claimed_at=now)
            connection.execute(new.on_conflict_do_nothing())
            query = sa.select(tables.kept_replies).where(column.key == key)
            row = connection.execute(query).one_or_none()
        if row is None:  # released just now
            return ReplyClaim(ClaimState.RUNNING)
        # The row's token tells who was first; drivers report row counts differently.
        return (
            ReplyClaim(ClaimState.MINE, token) if row.token == token else _found(row, fingerprint)
        )

    def _change(self, claims: Mapping[str, str], **values: Any) -> None:
        update = sa.update(tables.kept_replies).where(_held(claims)).values(values)
        with _translated(), self._engine.begin() as connection:
            connection.execute(update)

    def _release(self, key: str, token: str) -> None:
        with _translated(), self._engine.begin() as connection:
            connection.execute(sa.delete(tables.kept_replies).where(_held({key: token})))


def _found(row: Any, fingerprint: str) -> ReplyClaim:
    if row.fingerprint != fingerprint:
        return ReplyClaim(ClaimState.OTHER)
    if row.body is None:
        return ReplyClaim(ClaimState.RUNNING)
    headers = tuple((name, value) for name, value in row.headers)
    return ReplyClaim(ClaimState.DONE, reply=KeptReply(row.status, headers, row.body))


def _held(claims: Mapping[str, str]) -> sa.ColumnElement[bool]:
    column = tables.kept_replies.c
    # A token belongs to one claim only, so the two IN clauses match no pair outside the claims.
    mine = column.key.in_(claims.keys()) & column.token.in_(claims.values())
    return mine & column.body.is_(None)


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    """Return an insert that supports ON CONFLICT, which each dialect implements itself."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
