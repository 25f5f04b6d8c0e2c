"""Query log in SQL, in the tables of the envelope contract, and readers' feedback on answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from bythebook.interfaces.conversations import (
    SCORE_BINS,
    DayTally,
    Feedback,
    LoggedQuery,
    Tally,
    Unanswered,
)
from bythebook.providers.sql.engine import SqlStore, delete_batch, insert, on_database_thread
from bythebook.providers.sql.schema import feedback as feedback_table
from bythebook.providers.sql.schema import queries, query_sessions

_REPORT = 60  # deadlines; reports on the whole log may take longer than a request


class SqlQueryLog(SqlStore):
    """Questions and outcomes for the author. A failing log must not fail an answer."""

    def __init__(self, engine: sa.Engine, *, deadline_s: float = 0.5) -> None:
        super().__init__(engine, threads=2, deadline_s=deadline_s)

    @on_database_thread()
    def record(self, entries: Sequence[LoggedQuery]) -> None:
        """Write all rows in one transaction; rows whose id exists are left unchanged."""
        with self._transaction() as connection:
            new = _not_stored(connection, entries)
            counts = Counter(entry.session for entry in new if entry.session)
            # Same order in all workers, so that workers that share sessions cannot deadlock.
            for session in sorted(counts):
                mine = [entry for entry in new if entry.session == session]
                _count(connection, session, mine)
            if new:
                connection.execute(sa.insert(queries), [_row(entry) for entry in new])

    @on_database_thread()
    def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` questions asked before ``before``; return the count."""
        column = query_sessions.c
        has_queries = sa.exists().where(queries.c.session_id == column.session_id)
        unused = (column.last_query_at < before, ~has_queries)
        with self._transaction() as connection:
            old = queries.c.created_at < before
            count = delete_batch(connection, queries.c.query_id, old, limit=limit)
            delete_batch(connection, column.session_id, *unused, limit=limit)
        return count

    @on_database_thread(deadlines=_REPORT)
    def tally(self, *, since: datetime) -> Tally:
        """Return the aggregated figures of the questions since ``since``."""
        column = queries.c
        recent = column.created_at >= since
        with self._engine.connect() as connection:

            def count(key: sa.ColumnElement[Any], *where: sa.ColumnElement[bool]) -> dict[Any, int]:
                counted = sa.select(key.label("key"), sa.func.count()).where(recent, *where)
                rows = connection.execute(counted.group_by(sa.text("1"))).all()
                return {row[0]: row[1] for row in rows}

            day = _day(connection, column.created_at)
            outcomes = sa.select(day.label("day"), column.status, sa.func.count()).where(recent)
            days: dict[date, dict[str, int]] = {}
            for when, status, number in connection.execute(outcomes.group_by(sa.text("1, 2"))):
                days.setdefault(date.fromisoformat(str(when)), {})[status] = number
            # The fixed score 1.0 of a selection says nothing about retrieval.
            searched = column.mode == "standard_rag"
            scored = column.top_chunk_score.is_not(None)
            scores = count(_bin(column.top_chunk_score), scored, searched)
            times = count(column.processing_time_ms, column.processing_time_ms.is_not(None))
            refusals = count(column.refusal_reason, column.refusal_reason.is_not(None))
        return Tally(
            days=tuple(
                DayTally(day, *(outcomes.get(name, 0) for name in ("success", "refused", "error")))
                for day, outcomes in sorted(days.items())
            ),
            scores=tuple(scores.get(number, 0) for number in range(SCORE_BINS)),
            times_ms=times,
            refusals=refusals,
        )

    @on_database_thread(deadlines=_REPORT)
    def unanswered(self, *, since: datetime, below: float, limit: int) -> Sequence[Unanswered]:
        """Return questions refused since ``since``, or answered with all scores under ``below``.

        Identical texts count as one question; most frequent first, then most recent. Questions
        stored without text and questions about a selection are left out.
        """
        column = queries.c
        refused = column.status == "refused"
        score = sa.func.coalesce(column.top_chunk_score, 0.0)
        unsure = sa.and_(column.status == "success", score < below)
        last_at = sa.func.max(column.created_at, type_=column.created_at.type)
        query = (
            sa.select(
                column.query_text, _sum_of(refused), _sum_of(unsure), last_at.label("last_at")
            )
            .where(column.created_at >= since, column.mode == "standard_rag")
            .where(column.query_text != "", sa.or_(refused, unsure))
            .group_by(column.query_text)
            .order_by(sa.func.count().desc(), last_at.desc())
            .limit(limit)
        )
        with self._engine.connect() as connection:
            return [
                Unanswered(text, int(refusals), int(low_scores), last)
                for text, refusals, low_scores, last in connection.execute(query)
            ]


def _day(connection: sa.Connection, moment: sa.ColumnElement[datetime]) -> sa.ColumnElement[Any]:
    """Return the day in UTC; PostgreSQL would use the session's time zone."""
    if connection.dialect.name == "postgresql":
        moment = sa.func.timezone("UTC", moment)
    return sa.func.date(moment)


def _bin(score: sa.ColumnElement[float]) -> sa.ColumnElement[int]:
    """Return the score's bin, by comparison: SQL rounding differs between the two databases."""
    upper = [(score < (n + 1) / SCORE_BINS, n) for n in range(SCORE_BINS - 1)]
    return sa.case(*upper, else_=SCORE_BINS - 1)


def _sum_of(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _not_stored(connection: sa.Connection, entries: Sequence[LoggedQuery]) -> list[LoggedQuery]:
    ids = [entry.id for entry in entries]
    query = sa.select(queries.c.query_id).where(queries.c.query_id.in_(ids))
    stored = set(connection.execute(query).scalars())
    return [entry for entry in entries if entry.id not in stored]


def _count(connection: sa.Connection, session: str, mine: Sequence[LoggedQuery]) -> None:
    first, last = mine[0], mine[-1]
    row = {"session_id": session, "user_ip": first.network, "created_at": first.asked_at}
    new = insert(connection, query_sessions).on_conflict_do_nothing()
    connection.execute(new.values(**row, query_count=0))
    count = query_sessions.c.query_count + len(mine)
    update = sa.update(query_sessions).where(query_sessions.c.session_id == session)
    connection.execute(update.values(query_count=count, last_query_at=last.asked_at))


def _row(entry: LoggedQuery) -> dict[str, Any]:
    return {
        "query_id": entry.id,
        "session_id": entry.session,
        "query_text": entry.text,
        "selected_text_length": entry.selection_length,
        "mode": entry.mode,
        "status": entry.status,
        "refusal_reason": entry.refusal,
        "chunks_retrieved": entry.passages,
        "top_chunk_score": entry.best_score,
        "processing_time_ms": entry.total_ms,
        "created_at": entry.asked_at,
    }


class SqlFeedback(SqlStore):
    """Readers' feedback on answers, retained as long as the query log."""

    def __init__(self, engine: sa.Engine, *, deadline_s: float = 2.0) -> None:
        super().__init__(engine, threads=1, deadline_s=deadline_s)

    @on_database_thread()
    def add(self, feedback: Feedback) -> None:
        """Store feedback, replacing an earlier one with the same id: users may change it."""
        row = {
            "feedback_id": feedback.id,
            "query_id": feedback.query,
            "verdict": feedback.verdict,
            "reason": feedback.reason,
            "comment": feedback.text,
            "created_at": feedback.given_at,
        }
        with self._transaction() as connection:
            connection.execute(
                sa.delete(feedback_table).where(feedback_table.c.feedback_id == feedback.id)
            )
            connection.execute(sa.insert(feedback_table).values(row))

    @on_database_thread()
    def recent(self, *, since: datetime, limit: int) -> list[Feedback]:
        """Return the feedback given since ``since``, newest first."""
        newest = (
            sa.select(feedback_table)
            .where(feedback_table.c.created_at >= since)
            .order_by(feedback_table.c.created_at.desc(), feedback_table.c.feedback_id)
            .limit(limit)
        )
        with self._engine.connect() as connection:
            return [_feedback(row) for row in connection.execute(newest)]

    @on_database_thread()
    def purge(self, *, before: datetime, limit: int) -> int:
        old = feedback_table.c.created_at < before
        with self._transaction() as connection:
            return delete_batch(connection, feedback_table.c.feedback_id, old, limit=limit)


def _feedback(row: sa.Row[tuple[object, ...]]) -> Feedback:
    return Feedback(
        id=row.feedback_id,
        query=row.query_id,
        verdict=row.verdict,
        reason=row.reason,
        text=row.comment,
        given_at=row.created_at,
    )
