"""Conformance suite of the store of feedback."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bythebook.interfaces.conversations import Feedback
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlFeedback
from bythebook.providers.testing import MemoryFeedback
from tests.support.databases import POSTGRES, address

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _feedback(day: int = 0) -> Feedback:
    name = str(uuid.uuid4())
    return Feedback(name, name, "down", "wrong", "Das ist falsch. غلط", _NOW + timedelta(days=day))


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlFeedback]:
    if request.param == "memory":
        yield MemoryFeedback()
        return
    engine = open_database(address(request.param, tmp_path, request), tmp_path)
    store = SqlFeedback(engine, deadline_s=60)
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
