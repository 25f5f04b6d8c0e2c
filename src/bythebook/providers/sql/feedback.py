"""Readers' feedback on answers in SQL: the table ``feedback``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial

import sqlalchemy as sa

from bythebook.interfaces.conversations import Feedback
from bythebook.providers.sql.catalog import translated
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.providers.sql.schema import feedback as table


class SqlFeedback:
    def __init__(self, engine: sa.Engine, *, deadline_s: float = 2.0) -> None:
        self._engine = engine
        self._executor = DeadlineExecutor(1, deadline_s=deadline_s)

    async def add(self, feedback: Feedback) -> None:
        await self._executor.do(partial(self._add, feedback))

    async def recent(self, *, since: datetime, limit: int) -> list[Feedback]:
        return await self._executor.do(partial(self._recent, since, limit))

    async def purge(self, *, before: datetime, limit: int) -> int:
        return await self._executor.do(partial(self._purge, before, limit))

    async def close(self) -> None:
        self._executor.close()
        await asyncio.to_thread(self._engine.dispose)

    @translated
    def _add(self, feedback: Feedback) -> None:
        row = {
            "feedback_id": feedback.id,
            "query_id": feedback.query,
            "verdict": feedback.verdict,
            "reason": feedback.reason,
            "comment": feedback.text,
            "created_at": feedback.given_at.astimezone(UTC),
        }
        with self._engine.begin() as connection:
            connection.execute(sa.delete(table).where(table.c.feedback_id == feedback.id))
            connection.execute(sa.insert(table).values(row))
            self._executor.check_wanted()

    @translated
    def _recent(self, since: datetime, limit: int) -> list[Feedback]:
        newest = (
            sa.select(table)
            .where(table.c.created_at >= since.astimezone(UTC))
            .order_by(table.c.created_at.desc(), table.c.feedback_id)
            .limit(limit)
        )
        with self._engine.connect() as connection:
            return [_feedback(row) for row in connection.execute(newest)]

    @translated
    def _purge(self, before: datetime, limit: int) -> int:
        old = sa.select(table.c.feedback_id).where(table.c.created_at < before.astimezone(UTC))
        with self._engine.begin() as connection:
            ids = connection.execute(old.limit(limit)).scalars().all()
            gone = connection.execute(sa.delete(table).where(table.c.feedback_id.in_(ids)))
            self._executor.check_wanted()
        return gone.rowcount


def _feedback(row: sa.Row[tuple[object, ...]]) -> Feedback:
    given_at: datetime = row.created_at
    return Feedback(
        id=row.feedback_id,
        query=row.query_id,
        verdict=row.verdict,
        reason=row.reason,
        text=row.comment,
        given_at=given_at if given_at.tzinfo else given_at.replace(tzinfo=UTC),  # SQLite has none
    )
