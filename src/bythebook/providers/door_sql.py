"""What the door remembers, in SQL: keys, counts of the last minute, answers of the last day."""

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
from bythebook.ports import ABANDONED_S, KEPT_S, ApiKey, Claim, ClaimState, Count, KeptReply
from bythebook.providers import tables
from bythebook.providers.hands import Hands
from bythebook.providers.sql import open_database

Clock = Callable[[], float]

_SWEEP_S = 60
_DEADLINE_S = 3.0


def open_counts(url: str | None, home: Path) -> sa.Engine:
    """An engine for counts and kept replies.

    Without a ``url`` they have a file of their own: an ingest holds the home's database for as
    long as it commits a book, and nobody should wait for that to be counted.
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
    # NORMAL: whole after a power cut, though without its last counts, which nobody misses.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=2500"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise DatabaseFailed(
            "The database did not answer.", cure="Check DATABASE_URL or the home folder."
        ) from error


class SqlKeys:
    def __init__(self, engine: sa.Engine, *, deadline_s: float = _DEADLINE_S) -> None:
        self._engine = engine
        self._hands = Hands(2, deadline_s=deadline_s)

    async def add(self, key: ApiKey) -> None:
        await self._hands.do(lambda: self._add(key))

    async def all(self) -> list[ApiKey]:
        return await self._hands.do(self._all)

    async def revoke(self, key_id: str, at: datetime) -> bool:
        return await self._hands.do(lambda: self._revoke(key_id, at))

    async def close(self) -> None:
        self._hands.close()
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
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite keeps no time zone


class _Sweeper:
    """Says once in a while that it is time to forget what has expired."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self, now: float) -> bool:
        due = now >= self._next
        if due:
            self._next = now + _SWEEP_S
        return due


class SqlCounter:
    """A moving window is one row: the moments of what was allowed in it."""

    def __init__(
        self, engine: sa.Engine, *, clock: Clock = time.time, deadline_s: float = _DEADLINE_S
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._sweeper = _Sweeper()
        # SQLite lets waiting writers starve; of each process only one waits there.
        self._hands = Hands(1 if engine.dialect.name == "sqlite" else 8, deadline_s=deadline_s)

    async def take(self, key: str, *, limit: int, seconds: int) -> Count:
        return await self._hands.do(lambda: self._take(key, limit, seconds))

    async def close(self) -> None:
        self._hands.close()
        await asyncio.to_thread(self._engine.dispose)

    def _take(self, key: str, limit: int, seconds: int) -> Count:
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
        return Count(allowed, limit - len(live), min(live) + seconds - now)

    def _lock_row(self, connection: sa.Connection, key: str) -> None:
        """Writing first orders whoever counts here, on either database."""
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
        self._hands = Hands(deadline_s=deadline_s)

    async def claim(self, key: str, fingerprint: str) -> Claim:
        return await self._hands.do(lambda: self._claim(key, fingerprint))

    async def hold(self, claims: Mapping[str, str]) -> None:
        await self._hands.do(lambda: self._change(claims, claimed_at=self._clock()))

    async def keep(self, key: str, token: str, reply: KeptReply) -> None:
        values = {"status": reply.status, "headers": reply.headers, "body": reply.body}
        await self._hands.do(lambda: self._change({key: token}, **values))

    async def release(self, key: str, token: str) -> None:
        await self._hands.do(lambda: self._release(key, token))

    async def close(self) -> None:
        self._hands.close()
        await asyncio.to_thread(self._engine.dispose)

    def _claim(self, key: str, fingerprint: str) -> Claim:
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
        if row is None:  # released this very moment
            return Claim(ClaimState.RUNNING)
        # Whose row it is tells who was first; drivers do not agree on how to count rows.
        return Claim(ClaimState.MINE, token) if row.token == token else _found(row, fingerprint)

    def _change(self, claims: Mapping[str, str], **values: Any) -> None:
        update = sa.update(tables.kept_replies).where(_held(claims)).values(values)
        with _translated(), self._engine.begin() as connection:
            connection.execute(update)

    def _release(self, key: str, token: str) -> None:
        with _translated(), self._engine.begin() as connection:
            connection.execute(sa.delete(tables.kept_replies).where(_held({key: token})))


def _found(row: Any, fingerprint: str) -> Claim:
    if row.fingerprint != fingerprint:
        return Claim(ClaimState.OTHER)
    if row.body is None:
        return Claim(ClaimState.RUNNING)
    headers = tuple((name, value) for name, value in row.headers)
    return Claim(ClaimState.DONE, reply=KeptReply(row.status, headers, row.body))


def _held(claims: Mapping[str, str]) -> sa.ColumnElement[bool]:
    column = tables.kept_replies.c
    # A token is one claim's alone, so that no pair is among these which is not in the claims.
    mine = column.key.in_(claims.keys()) & column.token.in_(claims.values())
    return mine & column.body.is_(None)


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    """An insert that can say what to do with a row that is there: each dialect has its own."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
