"""The log of questions in SQL: S2's ``query_sessions`` and ``queries``."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from bythebook.ports import LoggedQuery
from bythebook.providers.hands import Hands
from bythebook.providers.sql import insert_new, translated
from bythebook.providers.tables import queries, query_sessions


class SqlQueryLog:
    def __init__(self, engine: sa.Engine, *, deadline_s: float = 0.5) -> None:
        self._engine = engine
        self._hands = Hands(2, deadline_s=deadline_s)

    async def record(self, entries: Sequence[LoggedQuery]) -> None:
        await self._hands.do(partial(self._record, entries))

    async def purge(self, *, before: datetime, limit: int) -> int:
        return await self._hands.do(partial(self._purge, before, limit))

    async def close(self) -> None:
        self._hands.close()
        await asyncio.to_thread(self._engine.dispose)

    @translated
    def _record(self, entries: Sequence[LoggedQuery]) -> None:
        with self._engine.begin() as connection:
            new = _not_known(connection, entries)
            counts = Counter(entry.session for entry in new if entry.session)
            # In one order everywhere: workers that share sessions wait, and never for each other.
            for session in sorted(counts):
                mine = [entry for entry in new if entry.session == session]
                _count(connection, session, mine)
            if new:
                connection.execute(sa.insert(queries), [_row(entry) for entry in new])
            self._hands.check_wanted()

    @translated
    def _purge(self, before: datetime, limit: int) -> int:
        moment = before.astimezone(UTC)
        old = sa.select(queries.c.query_id).where(queries.c.created_at < moment).limit(limit)
        unused = sa.select(query_sessions.c.session_id).where(
            query_sessions.c.last_query_at < moment,
            ~sa.exists().where(queries.c.session_id == query_sessions.c.session_id),
        )
        with self._engine.begin() as connection:
            ids = connection.execute(old).scalars().all()
            gone = connection.execute(sa.delete(queries).where(queries.c.query_id.in_(ids)))
            left = connection.execute(unused.limit(limit)).scalars().all()
            sessions = sa.delete(query_sessions).where(query_sessions.c.session_id.in_(left))
            connection.execute(sessions)
            self._hands.check_wanted()
        return gone.rowcount


def _not_known(connection: sa.Connection, entries: Sequence[LoggedQuery]) -> list[LoggedQuery]:
    ids = [entry.id for entry in entries]
    query = sa.select(queries.c.query_id).where(queries.c.query_id.in_(ids))
    known = set(connection.execute(query).scalars())
    return [entry for entry in entries if entry.id not in known]


def _count(connection: sa.Connection, session: str, mine: Sequence[LoggedQuery]) -> None:
    first, last = mine[0], mine[-1]
    row = {"session_id": session, "user_ip": first.network, "created_at": _utc(first)}
    connection.execute(insert_new(connection, query_sessions).values(**row, query_count=0))
    more = {
        "query_count": query_sessions.c.query_count + len(mine),
        "last_query_at": _utc(last),
    }
    one = sa.update(query_sessions).where(query_sessions.c.session_id == session)
    connection.execute(one.values(more))


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
        "created_at": _utc(entry),
    }


def _utc(entry: LoggedQuery) -> datetime:
    return entry.asked_at.astimezone(UTC)
