"""The conformance suite of the QueryLog port, on every provider."""

import sqlite3
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from bythebook.ports import LoggedQuery, QueryLog
from bythebook.providers.fake import MemoryQueryLog
from bythebook.providers.sql import open_database
from bythebook.providers.sql_log import SqlQueryLog
from tests.databases import POSTGRES, address

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


@pytest.fixture(params=["fake", "sqlite", POSTGRES])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[QueryLog]:
    if request.param == "fake":
        yield MemoryQueryLog()
        return
    engine = open_database(address(request.param, tmp_path, request), tmp_path)
    log = SqlQueryLog(engine, deadline_s=60)
    yield log
    await log.close()


async def test_old_questions_go_batch_by_batch_and_new_ones_stay(log: QueryLog) -> None:
    await log.record([_query(number) for number in range(5)])
    before = _NOW + timedelta(days=3)
    assert [await log.purge(before=before, limit=2) for _ in range(3)] == [2, 1, 0]
    assert await log.purge(before=_NOW + timedelta(days=9), limit=9) == 2


async def test_what_is_written_twice_is_there_once(log: QueryLog) -> None:
    batch = [_query(), _query(session=None)]
    await log.record(batch)
    await log.record([*batch, _query()])
    assert await log.purge(before=_NOW + timedelta(days=9), limit=9) == 3


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
async def test_sessions_count_their_questions_and_go_with_them(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = open_database(address(kind, tmp_path, request), tmp_path)
    log = SqlQueryLog(engine, deadline_s=60)
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
    await log.close()


async def test_the_tables_have_the_seeds_columns_and_no_others(tmp_path: Path) -> None:
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
