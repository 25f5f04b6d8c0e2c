"""Access control in SQL: API keys, rate-limit counts, and replies to repeated requests."""

from __future__ import annotations

import secrets
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bythebook.interfaces.access import (
    ABANDONED_S,
    KEPT_S,
    ApiKey,
    ClaimState,
    KeptReply,
    RateCount,
    ReplyClaim,
)
from bythebook.providers.sql.engine import SqlStore, insert, on_database_thread
from bythebook.providers.sql.schema import api_keys, kept_replies, rate_windows


class SqlKeys(SqlStore):
    """API keys."""

    def __init__(self, engine: sa.Engine, *, deadline_s: float = 3.0) -> None:
        super().__init__(engine, threads=2, deadline_s=deadline_s)

    @on_database_thread()
    def add(self, key: ApiKey) -> None:
        row = {**asdict(key), "origins": list(key.origins)}
        with self._engine.begin() as connection:
            connection.execute(sa.insert(api_keys), [row])

    @on_database_thread()
    def all(self) -> list[ApiKey]:
        """Return every key, revoked ones included, oldest first."""
        oldest_first = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
        with self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(oldest_first)]

    @on_database_thread()
    def revoke(self, key_id: str, at: datetime) -> bool:
        """Revoke a key and return whether it exists. A revoked key keeps its first date."""
        is_key = api_keys.c.id == key_id
        revoke = sa.update(api_keys).where(is_key, api_keys.c.revoked_at.is_(None))
        with self._engine.begin() as connection:
            connection.execute(revoke.values(revoked_at=at))
            return connection.execute(sa.select(api_keys.c.id).where(is_key)).first() is not None


def _key(row: sa.Row[Any]) -> ApiKey:
    return ApiKey(**{**row._mapping, "origins": tuple(row.origins)})


class SqlCounter(SqlStore):
    """Moving-window rate limits; one row holds the times of all allowed hits in a window."""

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


class SqlReplies(SqlStore):
    """Store of idempotent requests: each is answered once and its reply kept for a day."""

    def __init__(
        self, engine: sa.Engine, *, clock: Callable[[], float] = time.time, deadline_s: float = 3.0
    ) -> None:
        super().__init__(engine, deadline_s=deadline_s)
        self._clock = clock

    @on_database_thread()
    def claim(self, key: str, fingerprint: str) -> ReplyClaim:
        column = kept_replies.c
        now, token = self._clock(), secrets.token_hex(16)
        expired = column.claimed_at < now - KEPT_S
        abandoned = column.body.is_(None) & (column.claimed_at < now - ABANDONED_S)
        gone = expired | abandoned
        with self._engine.begin() as connection:
            which = gone if self._is_sweep_due(now) else gone & (column.key == key)
            connection.execute(sa.delete(kept_replies).where(which))
            new = insert(connection, kept_replies).on_conflict_do_nothing()
            row = {"key": key, "fingerprint": fingerprint, "token": token, "claimed_at": now}
            connection.execute(new.values(row))
            query = sa.select(kept_replies).where(column.key == key)
            stored = connection.execute(query).one_or_none()
        if stored is None:  # released just now
            return ReplyClaim(ClaimState.RUNNING)
        # The row's token tells who was first; drivers report row counts differently.
        if stored.token == token:
            return ReplyClaim(ClaimState.MINE, token)
        return _claim_of_another(stored, fingerprint)

    @on_database_thread()
    def hold(self, claims: Mapping[str, str]) -> None:
        """Renew claims (key -> token) whose requests are still being answered."""
        self._update(claims, claimed_at=self._clock())

    @on_database_thread()
    def keep(self, key: str, token: str, reply: KeptReply) -> None:
        self._update({key: token}, status=reply.status, headers=reply.headers, body=reply.body)

    @on_database_thread()
    def release(self, key: str, token: str) -> None:
        """Give up the claim without a reply, so that the next attempt may claim the key."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(kept_replies).where(_held({key: token})))

    def _update(self, claims: Mapping[str, str], **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.update(kept_replies).where(_held(claims)).values(values))


def _claim_of_another(row: Any, fingerprint: str) -> ReplyClaim:
    if row.fingerprint != fingerprint:
        return ReplyClaim(ClaimState.OTHER)
    if row.body is None:
        return ReplyClaim(ClaimState.RUNNING)
    headers = tuple((name, value) for name, value in row.headers)
    return ReplyClaim(ClaimState.DONE, reply=KeptReply(row.status, headers, row.body))


def _held(claims: Mapping[str, str]) -> sa.ColumnElement[bool]:
    column = kept_replies.c
    # A token belongs to one claim only, so the two IN clauses match no pair outside the claims.
    mine = column.key.in_(claims.keys()) & column.token.in_(claims.values())
    return mine & column.body.is_(None)
