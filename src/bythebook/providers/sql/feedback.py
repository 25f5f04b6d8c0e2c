"""Readers' feedback on answers in SQL: the table ``feedback``."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa

from bythebook.interfaces.conversations import Feedback
from bythebook.providers.sql.engine import SqlStore, aware, delete_batch, on_database_thread
from bythebook.providers.sql.schema import feedback as table


class SqlFeedback(SqlStore):
    def __init__(self, engine: sa.Engine, *, deadline_s: float = 2.0) -> None:
        super().__init__(engine, threads=1, deadline_s=deadline_s)

    @on_database_thread()
    def add(self, feedback: Feedback) -> None:
        row = {
            "feedback_id": feedback.id,
            "query_id": feedback.query,
            "verdict": feedback.verdict,
            "reason": feedback.reason,
            "comment": feedback.text,
            "created_at": feedback.given_at.astimezone(UTC),
        }
        with self._transaction() as connection:
            connection.execute(sa.delete(table).where(table.c.feedback_id == feedback.id))
            connection.execute(sa.insert(table).values(row))

    @on_database_thread()
    def recent(self, *, since: datetime, limit: int) -> list[Feedback]:
        newest = (
            sa.select(table)
            .where(table.c.created_at >= since.astimezone(UTC))
            .order_by(table.c.created_at.desc(), table.c.feedback_id)
            .limit(limit)
        )
        with self._engine.connect() as connection:
            return [_feedback(row) for row in connection.execute(newest)]

    @on_database_thread()
    def purge(self, *, before: datetime, limit: int) -> int:
        old = table.c.created_at < before.astimezone(UTC)
        with self._transaction() as connection:
            return delete_batch(connection, table.c.feedback_id, old, limit=limit)


def _feedback(row: sa.Row[tuple[object, ...]]) -> Feedback:
    return Feedback(
        id=row.feedback_id,
        query=row.query_id,
        verdict=row.verdict,
        reason=row.reason,
        text=row.comment,
        given_at=aware(row.created_at),
    )
