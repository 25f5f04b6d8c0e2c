"""The query log and readers' feedback, on every database."""

import sqlite3
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa

from bythebook.interfaces.conversations import DayTally, Feedback, LoggedQuery, Tally
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlFeedback, SqlQueryLog
from tests.interfaces.conftest import PATIENT_S

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_SESSION = str(uuid.uuid4())


def _query(number: int = 0, session: str | None = _SESSION) -> LoggedQuery:
    return LoggedQuery(
        id=str(uuid.uuid4()),
        session=session,
        text=f"What is {number}? كيف؟",
        selection_length=None,
        mode="standard_rag",
        status="success",
        refusal=None,
        passages=5,
        best_score=0.75,
        total_ms=12,
        asked_at=_NOW + timedelta(days=number),
        network="203.0.113.0",
    )


@pytest.fixture
async def log(engine: sa.Engine) -> AsyncIterator[SqlQueryLog]:
    log = SqlQueryLog(engine, deadline_s=PATIENT_S)
    yield log
    await log.close()


async def test_old_queries_are_purged_in_batches(log: SqlQueryLog) -> None:
    await log.record([_query(number) for number in range(5)])
    before = _NOW + timedelta(days=3)
    assert [await log.purge(before=before, limit=2) for _ in range(3)] == [2, 1, 0]
    assert await log.purge(before=_NOW + timedelta(days=9), limit=9) == 2


async def test_a_query_recorded_twice_is_stored_once(log: SqlQueryLog) -> None:
    batch = [_query(), _query(session=None)]
    await log.record(batch)
    await log.record([*batch, _query()])
    assert await log.purge(before=_NOW + timedelta(days=9), limit=9) == 3


async def test_a_tally_counts_days_scores_times_and_reasons(log: SqlQueryLog) -> None:
    refused = {"status": "refused", "refusal": "low_relevance", "best_score": 0.3}
    await log.record(
        [
            _query(0),
            replace(_query(0), best_score=1.0, total_ms=30),
            replace(_query(1), **refused),
            replace(_query(1), **refused, asked_at=_NOW + timedelta(days=1, hours=20, minutes=55)),
            replace(_query(1), status="error", best_score=None, total_ms=900),
            replace(_query(-3), text="long ago"),
            replace(_query(1), mode="selected_text_only", best_score=1.0),
        ]
    )
    tally = await log.tally(since=_NOW - timedelta(days=1))
    first, second = _NOW.date(), _NOW.date() + timedelta(days=1)
    assert tally.days == (DayTally(first, 2, 0, 0), DayTally(second, 1, 2, 1))
    assert {place: n for place, n in enumerate(tally.scores) if n} == {6: 2, 15: 1, 19: 1}
    assert dict(tally.times_ms) == {12: 4, 30: 1, 900: 1}
    assert dict(tally.refusals) == {"low_relevance": 2}
    assert await log.tally(since=_NOW + timedelta(days=9)) == Tally()


async def test_days_are_counted_in_utc(log: SqlQueryLog) -> None:
    tokyo = timezone(timedelta(hours=9))
    asked = datetime(2026, 1, 2, 8, 30, tzinfo=tokyo)  # still the first of January, UTC
    await log.record([replace(_query(0), asked_at=asked)])
    tally = await log.tally(since=asked - timedelta(days=1))
    assert [day.day for day in tally.days] == [date(2026, 1, 1)]


async def test_unanswered_questions_are_sorted_by_frequency(log: SqlQueryLog) -> None:
    refused = replace(_query(0), status="refused", refusal="empty_retrieval", best_score=None)
    unsure = replace(_query(1), text="Unsure?", best_score=0.55)

    def again(query: LoggedQuery, **changes: object) -> LoggedQuery:
        return replace(query, id=str(uuid.uuid4()), **changes)  # type: ignore[arg-type]

    await log.record(
        [
            again(refused, text="Often?"),
            again(refused, text="Often?", asked_at=_NOW + timedelta(days=2)),
            again(unsure, text="Often?"),
            again(unsure),
            again(refused, text="Once?", asked_at=_NOW - timedelta(hours=1)),
            again(refused, text=""),  # its words were not kept
            again(refused, text="Long ago?", asked_at=_NOW - timedelta(days=5)),
            again(refused, text="Of a selection?", mode="selected_text_only"),
            again(unsure, text="Sure.", best_score=0.6),
            again(refused, text="Broken", status="error"),
        ]
    )
    since = _NOW - timedelta(days=1)
    found = await log.unanswered(since=since, below=0.6, limit=9)
    assert [(one.text, one.refused, one.unsure) for one in found] == [
        ("Often?", 2, 1),
        ("Unsure?", 0, 1),
        ("Once?", 1, 0),
    ]
    assert found[0].last_at == _NOW + timedelta(days=2)
    assert [one.text for one in await log.unanswered(since=since, below=0.6, limit=1)] == ["Often?"]


async def test_sessions_count_their_queries_and_are_purged_with_them(
    log: SqlQueryLog, engine: sa.Engine
) -> None:
    batch = [_query(0), _query(1), _query(2, session=None)]
    await log.record(batch)
    await log.record([*batch, _query(3)])

    def sessions() -> list[tuple[object, ...]]:
        with engine.connect() as connection:
            found = connection.execute(
                sa.text("SELECT user_ip, query_count FROM query_sessions")
            ).all()
        return [tuple(row) for row in found]

    assert sessions() == [("203.0.113.0", 3)]
    assert await log.purge(before=_NOW + timedelta(days=2), limit=9) == 2
    assert len(sessions()) == 1
    assert await log.purge(before=_NOW + timedelta(days=9), limit=9) == 2
    assert sessions() == []


async def test_the_tables_have_the_specified_columns_and_no_others(tmp_path: Path) -> None:
    open_database(None, tmp_path).dispose()
    with sqlite3.connect(tmp_path / "bythebook.db") as database:
        columns = {
            table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            for table in ("query_sessions", "queries")
        }
    assert columns == {
        "query_sessions": ["session_id", "created_at", "user_ip", "query_count", "last_query_at"],
        "queries": [
            *("query_id", "session_id", "query_text", "selected_text_length", "mode", "status"),
            *("refusal_reason", "chunks_retrieved", "top_chunk_score", "processing_time_ms"),
            "created_at",
        ],
    }


# --- feedback -------------------------------------------------------------------------------------


def _feedback(day: int = 0) -> Feedback:
    name = str(uuid.uuid4())
    return Feedback(name, name, "down", "wrong", "Das ist falsch. غلط", _NOW + timedelta(days=day))


@pytest.fixture
async def store(engine: sa.Engine) -> AsyncIterator[SqlFeedback]:
    store = SqlFeedback(engine, deadline_s=PATIENT_S)
    yield store
    await store.close()


async def test_feedback_is_read_back_newest_first(store: SqlFeedback) -> None:
    given = [_feedback(day) for day in range(4)]
    for one in given:
        await store.add(one)
    assert await store.recent(since=_NOW + timedelta(days=1), limit=9) == given[:0:-1]
    assert await store.recent(since=_NOW, limit=2) == [given[3], given[2]]


async def test_feedback_with_the_same_id_is_replaced(store: SqlFeedback) -> None:
    first = _feedback()
    second = replace(first, verdict="up", reason=None, text=None, given_at=_NOW)
    await store.add(first)
    await store.add(second)
    assert await store.recent(since=_NOW, limit=9) == [second]


async def test_old_feedback_is_purged_in_batches(store: SqlFeedback) -> None:
    for day in range(5):
        await store.add(_feedback(day))
    before = _NOW + timedelta(days=3)
    assert [await store.purge(before=before, limit=2) for _ in range(3)] == [2, 1, 0]
    assert len(await store.recent(since=_NOW, limit=9)) == 2
