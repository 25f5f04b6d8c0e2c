"""A SQL view shows conversations with chat's columns, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bythebook.contracts.chat import show_thread
from bythebook.conversations.query_log import LoggedRequest, LogQueue
from bythebook.interfaces.conversations import Asker
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Message, Question, Role
from tests.support.databases import POSTGRES, address

_NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
_COLUMNS = ["thread_id", "messages", "created_at", "updated_at", "topic_summary", "metadata"]


def _exchange(number: int) -> list[Message]:
    when = _NOW + timedelta(minutes=number)
    answer = Message(Role.ASSISTANT, f'answer "{number}"', when + timedelta(seconds=1), 0.5)
    return [Message(Role.USER, f"سؤال {number}?", when), answer]


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


@pytest.fixture(params=["sqlite", POSTGRES])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    engine = open_database(address(request.param, tmp_path, request), tmp_path)
    yield engine
    engine.dispose()


async def test_the_view_shows_what_the_api_shows(engine: sa.Engine) -> None:
    threads, name = SqlThreads(engine, deadline_s=60), str(uuid.uuid4())
    for number in range(30):
        thread = await threads.append(name, _exchange(number), owner=None)
    with engine.connect() as connection:
        found = connection.execute(sa.text("SELECT * FROM conversation_threads"))
        assert list(found.keys()) == _COLUMNS
        row = found.one()
        kinds = {
            c["name"]: c["type"] for c in sa.inspect(connection).get_columns("conversation_threads")
        }
    shown = show_thread(thread).model_dump(mode="json")
    assert str(row.thread_id) == name
    messages = [
        {
            field: message[field]
            for field in ("role", "content", "timestamp", "confidence")
            if message.get(field) is not None
        }
        for message in shown["messages"]
    ]
    assert len(messages) == 50
    assert _json(row.messages) == messages
    assert (row.topic_summary, _json(row.metadata)) == (shown["topic_summary"], {})
    if engine.dialect.name == "postgresql":
        assert isinstance(kinds["thread_id"], sa.Uuid)
        assert "JSONB" in repr(kinds["messages"])
    await threads.close()


async def test_the_view_accepts_empty_threads_and_ids_that_are_not_uuids(engine: sa.Engine) -> None:
    threads = SqlThreads(engine, deadline_s=60)
    await threads.append("not-a-uuid", _exchange(0), owner=None)
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM thread_messages"))
        rows = connection.execute(sa.text("SELECT messages FROM conversation_threads")).all()
    assert [_json(row.messages) for row in rows] == [[]]
    await threads.close()


async def test_uuids_are_stored_with_dashes(engine: sa.Engine) -> None:
    log, session = SqlQueryLog(engine, deadline_s=60), str(uuid.uuid4())
    queue = LogQueue(log)
    asker = Asker(session=session, query=str(uuid.uuid4()))
    LoggedRequest(Question("When?"), asker, mode="standard_rag", log=queue).end(None)
    await queue.flush()
    with engine.connect() as connection:
        [logged] = connection.execute(sa.text("SELECT query_id, session_id FROM queries")).all()
        [counted] = connection.execute(sa.text("SELECT session_id FROM query_sessions")).scalars()
    assert [str(each) for each in (*logged, counted)] == [asker.query, session, session]
    await log.close()
