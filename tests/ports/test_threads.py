"""The conformance suite of the ThreadStore port, on every provider."""

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bythebook.model import Message, Role
from bythebook.ports import ThreadStore
from bythebook.providers.fake import MemoryThreads
from bythebook.providers.sql import SqlThreads, open_database

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(params=["fake", "sqlite"])
def threads(request: pytest.FixtureRequest, tmp_path: Path) -> ThreadStore:
    return MemoryThreads() if request.param == "fake" else SqlThreads(open_database(None, tmp_path))


def _exchange(number: int) -> list[Message]:
    when = _NOW + timedelta(minutes=number)
    return [
        Message(Role.USER, f"question {number}", when),
        Message(Role.ASSISTANT, f"answer {number}", when, 0.5),
    ]


async def test_the_first_message_creates_the_thread(threads: ThreadStore) -> None:
    name = str(uuid.uuid4())
    assert await threads.read(name) is None
    await threads.append(name, _exchange(0))
    thread = await threads.read(name)
    assert thread is not None
    assert thread.messages == tuple(_exchange(0))
    assert thread.created_at == _NOW


async def test_messages_keep_their_order_and_threads_do_not_mix(threads: ThreadStore) -> None:
    one, other = str(uuid.uuid4()), str(uuid.uuid4())
    for number in range(3):
        await threads.append(one, _exchange(number))
    await threads.append(other, _exchange(9))
    thread = await threads.read(one)
    assert thread is not None
    assert [m.content for m in thread.messages[::2]] == ["question 0", "question 1", "question 2"]
    assert thread.updated_at == _NOW + timedelta(minutes=2)


async def test_a_deleted_thread_is_gone(threads: ThreadStore) -> None:
    name = str(uuid.uuid4())
    await threads.append(name, _exchange(0))
    assert await threads.delete(name)
    assert await threads.read(name) is None
    assert not await threads.delete(name)
