"""Replies of the last day in SQL, to be replayed for repeated requests: ``kept_replies``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from bythebook.interfaces.access import ABANDONED_S, KEPT_S, ClaimState, KeptReply, ReplyClaim
from bythebook.providers.sql.engine import SqlStore, insert, on_database_thread
from bythebook.providers.sql.schema import kept_replies


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
