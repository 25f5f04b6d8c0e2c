"""Conformance suite of threads and their archive."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from bythebook.errors import InvalidInput, NotFound
from bythebook.interfaces.conversations import ANYONE, Thread
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Citation, Message, Place, Role
from tests.interfaces.conftest import PATIENT_S

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_MINE, _YOURS = "key-1", "key-2"
_PLACE = Place("a.md", "Kites", "/docs/a#wind", "m", "c", ("Wind", "How much"))
_CITATION = Citation(1, "f" * 64, _PLACE, "The wind’s 12 km/h.", "/a#wind", "/a#wind:~:text=x", 0.9)


@pytest.fixture
async def threads(engine: sa.Engine) -> AsyncIterator[SqlThreads]:
    threads = SqlThreads(engine, deadline_s=PATIENT_S)
    yield threads
    await threads.close()


def _exchange(number: int) -> list[Message]:
    when = _NOW + timedelta(minutes=number)
    return [
        Message(Role.USER, f"question {number}", when),
        Message(Role.ASSISTANT, f"answer {number}", when, 0.5, (_CITATION,)),
    ]


def _new() -> str:
    return str(uuid.uuid4())


async def _read(
    threads: SqlThreads, name: str, *, owner: str | None = None, whole: bool = False
) -> Thread:
    thread = await threads.read(name, owner=owner, whole=whole)
    assert thread is not None
    return thread


async def test_the_first_message_creates_the_thread(threads: SqlThreads) -> None:
    name = _new()
    assert await threads.read(name, owner=_MINE) is None
    written = await threads.append(name, _exchange(0), owner=_MINE)
    thread = await _read(threads, name, owner=_MINE)
    assert thread == written
    assert thread.messages == tuple(_exchange(0))
    assert (thread.created_at, thread.owner, thread.archived_at) == (_NOW, _MINE, None)


async def test_the_id_of_a_deleted_thread_can_be_used_again(threads: SqlThreads) -> None:
    name = _new()
    await threads.append(name, _exchange(0), owner=_MINE)
    assert await threads.delete(name, owner=_MINE)
    assert await threads.read(name, owner=_MINE) is None
    assert not await threads.delete(name, owner=_MINE)
    again = await threads.append(name, _exchange(1), owner=_YOURS)
    assert again.messages == tuple(_exchange(1))


@pytest.mark.parametrize(("owner", "stranger"), [(_MINE, _YOURS), (_MINE, None), (None, _MINE)])
async def test_another_owners_thread_is_not_found(
    threads: SqlThreads, owner: str | None, stranger: str | None
) -> None:
    name = _new()
    await threads.append(name, _exchange(0), owner=owner)
    with pytest.raises(NotFound, match="no such thread"):
        await threads.read(name, owner=stranger)
    with pytest.raises(NotFound, match="no such thread"):
        await threads.append(name, _exchange(1), owner=stranger)
    assert not await threads.delete(name, owner=stranger)
    assert await threads.list(owner=stranger) == []
    assert (await _read(threads, name, owner=owner)).messages == tuple(_exchange(0))


async def test_the_operator_sees_the_threads_of_all_owners(threads: SqlThreads) -> None:
    names = {_MINE: _new(), _YOURS: _new(), None: _new()}
    for owner, name in names.items():
        await threads.append(name, _exchange(0), owner=owner)
        assert await threads.read(name, owner=ANYONE) is not None
    assert {one.id for one in await threads.list(owner=ANYONE)} == set(names.values())
    assert await threads.delete(names[_MINE], owner=ANYONE)


async def test_threads_are_listed_in_pages_newest_first(threads: SqlThreads) -> None:
    names = [_new() for _ in range(5)]
    for number, name in enumerate(names):
        await threads.append(name, _exchange(number), owner=_MINE)
    await threads.append(names[1], _exchange(9), owner=_MINE)
    await threads.append(_new(), _exchange(3), owner=_YOURS)
    pages = [await threads.list(owner=_MINE, limit=2, offset=n) for n in (0, 2, 4, 6)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    listed = [one for page in pages for one in page]
    assert [one.id for one in listed] == [names[n] for n in (1, 4, 3, 2, 0)]
    assert [one.messages for one in listed] == [4, 2, 2, 2, 2]
    assert listed[0].created_at == _NOW + timedelta(minutes=1)
    assert listed[0].updated_at == _NOW + timedelta(minutes=9)


async def test_fifty_messages_are_read_and_all_are_kept(threads: SqlThreads) -> None:
    name = _new()
    for number in range(30):
        await threads.append(name, _exchange(number), owner=None)
    thread, whole = await _read(threads, name), await _read(threads, name, whole=True)
    assert len(thread.messages) == 50
    assert thread.earlier == 10
    assert whole.earlier == 0
    assert whole.messages == tuple(m for n in range(30) for m in _exchange(n))
    assert thread.messages == whole.messages[10:]


async def test_roles_must_alternate(threads: SqlThreads) -> None:
    name = _new()
    user, assistant = _exchange(0)
    for wrong in ([assistant], [user, user], [user, assistant, assistant]):
        with pytest.raises(InvalidInput, match=r"the (user|assistant)'s"):
            await threads.append(name, wrong, owner=None)
    assert await threads.read(name, owner=None) is None
    await threads.append(name, [user], owner=None)
    with pytest.raises(InvalidInput, match="the assistant's"):
        await threads.append(name, [user], owner=None)
    await threads.append(name, [assistant], owner=None)


async def test_timestamps_never_decrease(threads: SqlThreads) -> None:
    name = _new()
    await threads.append(name, _exchange(5), owner=None)
    thread = await threads.append(name, _exchange(2), owner=None)
    assert {m.timestamp for m in thread.messages} == {_NOW + timedelta(minutes=5)}
    assert thread.updated_at == _NOW + timedelta(minutes=5)


async def test_the_callers_summary_of_the_live_messages_is_stored(threads: SqlThreads) -> None:
    thread_id = _new()

    def summarise(messages: Sequence[Message]) -> str:
        return f"{len(messages)} messages, last: {messages[-1].content}"

    for number in range(30):
        thread = await threads.append(thread_id, _exchange(number), owner=None, summarise=summarise)
    assert thread.topic_summary == "50 messages, last: answer 29"
    assert (await threads.list(owner=None))[0].topic_summary == thread.topic_summary
    thread = await threads.append(thread_id, _exchange(30), owner=None)
    assert thread.topic_summary == "50 messages, last: answer 29"
    forget = await threads.append(
        thread_id, _exchange(31), owner=None, summarise=lambda messages: None
    )
    assert forget.topic_summary is None


async def test_concurrent_appends_keep_exchanges_together(threads: SqlThreads) -> None:
    name = _new()

    async def client(letter: str) -> None:
        for number in range(15):
            exchange = [replace(m, content=f"{letter}{number}") for m in _exchange(number)]
            await threads.append(name, exchange, owner=None)

    await asyncio.gather(client("a"), client("b"))
    whole = await _read(threads, name, whole=True)
    said = [message.content for message in whole.messages]
    assert len(said) == 60
    assert said[::2] == said[1::2]  # each question is followed by its own answer
    for letter in "ab":
        assert [s for s in said[::2] if s[0] == letter] == [f"{letter}{n}" for n in range(15)]
    times = [message.timestamp for message in whole.messages]
    assert times == sorted(times)


def _asked(number: int, request: str, words: str = "") -> list[Message]:
    """An exchange of a request that may come again, and then perhaps in other words."""
    user, assistant = _exchange(number)
    told = replace(assistant, content=f"{assistant.content} {words}")
    return [replace(user, request=request), told]


async def test_a_repeated_request_replaces_its_earlier_messages(threads: SqlThreads) -> None:
    name = _new()
    await threads.append(name, _exchange(0), owner=None)
    await threads.append(name, _asked(1, "one", "first"), owner=None)
    again = await threads.append(name, _asked(7, "one", "later"), owner=None)
    where = [replace(m, content=m.content.replace("1", "7")) for m in _asked(1, "one", "later")]
    assert again.messages == (*_exchange(0), *where)
    assert again.updated_at == _NOW + timedelta(minutes=1)
    assert again == await threads.read(name, owner=None)
    last = await threads.append(name, _asked(8, "two"), owner=None)
    assert len(last.messages) == 6


async def test_a_repeated_request_is_recognised_beyond_the_live_messages(
    threads: SqlThreads,
) -> None:
    name = _new()
    await threads.append(name, _asked(0, "one", "first"), owner=None)
    for number in range(1, 28):
        await threads.append(name, _exchange(number), owner=None)
    await threads.append(name, _asked(0, "one", "later"), owner=None)
    whole = await _read(threads, name, whole=True)
    assert whole.messages[:2] == tuple(_asked(0, "one", "later"))
    assert whole.messages[2:] == tuple(m for n in range(1, 28) for m in _exchange(n))


async def test_requests_of_different_threads_are_independent(threads: SqlThreads) -> None:
    names = [_new(), _new()]
    for name in names:
        await threads.append(name, _asked(0, "one"), owner=None)
    assert [one.messages for one in await threads.list(owner=None)] == [2, 2]


async def test_a_concurrent_repeated_request_is_stored_once(threads: SqlThreads) -> None:
    name = _new()
    await asyncio.gather(*(threads.append(name, _asked(0, "one"), owner=None) for _ in range(8)))
    thread = await _read(threads, name, whole=True)
    assert thread.messages == tuple(_asked(0, "one"))


async def test_two_clients_can_create_the_same_thread(threads: SqlThreads) -> None:
    names = [_new() for _ in range(10)]
    both = [threads.append(name, _exchange(0), owner=None) for name in names for _ in "ab"]
    await asyncio.gather(*both)
    for name in names:
        assert len((await _read(threads, name)).messages) == 4


async def test_an_idle_thread_is_archived_and_the_next_message_resumes_it(
    threads: SqlThreads,
) -> None:
    idle, live = _new(), _new()
    await threads.append(idle, _exchange(0), owner=_MINE)
    await threads.append(live, _exchange(30), owner=_MINE)
    before, later = _NOW + timedelta(minutes=10), _NOW + timedelta(minutes=70)
    assert await threads.archive(before=before, now=later, limit=9) == 1
    assert await threads.archive(before=before, now=later, limit=9) == 0
    thread = await _read(threads, idle, owner=_MINE)
    assert thread.archived_at == later
    assert thread.messages == tuple(_exchange(0))
    assert [one.archived_at for one in await threads.list(owner=_MINE)] == [None, later]
    resumed = await threads.append(idle, _exchange(80), owner=_MINE)
    assert resumed.archived_at is None
    assert resumed.messages == (*_exchange(0), *_exchange(80))


async def test_threads_are_archived_in_batches_or_by_id(threads: SqlThreads) -> None:
    names = [_new() for _ in range(5)]
    for name in names:
        await threads.append(name, _exchange(0), owner=None)
    when = {"before": _NOW + timedelta(hours=1), "now": _NOW + timedelta(hours=2)}
    assert await threads.archive(**when, limit=9, only=names[3]) == 1
    assert [await threads.archive(**when, limit=2) for _ in range(3)] == [2, 2, 0]


async def test_a_purge_deletes_old_threads(threads: SqlThreads) -> None:
    names = [_new() for _ in range(5)]
    for number, name in enumerate(names):
        await threads.append(name, _exchange(number), owner=None)
    before = _NOW + timedelta(minutes=3)
    assert [await threads.purge(before=before, limit=2) for _ in range(3)] == [2, 1, 0]
    assert [one.id for one in await threads.list(owner=None)] == names[:2:-1]


async def test_a_chore_is_claimed_once_per_interval(threads: SqlThreads) -> None:
    every = timedelta(minutes=1)

    async def claims(moment: datetime) -> list[bool]:
        rivals = [threads.claim("archive", now=moment, every=every) for _ in range(4)]
        return sorted(await asyncio.gather(*rivals))

    for minutes in (0, 1, 5):
        assert await claims(_NOW + minutes * every) == [False, False, False, True]
    assert await threads.claim("other", now=_NOW, every=every)


async def test_metadata_is_merged_and_threads_are_found_by_it(threads: SqlThreads) -> None:
    name, other = _new(), _new()
    first = {"user_id": "u1", "tags": ["ros2"], "week": 3}
    await threads.append(name, _exchange(0), owner=_MINE, metadata=first)
    await threads.append(other, _exchange(0), owner=_MINE)
    written = await threads.append(name, _exchange(1), owner=_MINE, metadata={"tags": ["é", "b"]})
    thread = await threads.read(name, owner=_MINE)
    assert thread is not None
    assert thread.metadata == written.metadata == {**first, "tags": ["é", "b"]}
    user, tag = ("user_id", "u1"), ("tags", "b")
    for wanted in ([user], [("tags", "é")], [("week", "3")], [user, tag], [("tags", "é"), tag]):
        found = await threads.list(owner=_MINE, metadata=wanted)
        assert [each.id for each in found] == [name], wanted
    for absent in (("user_id", "u2"), ("tags", "ros2"), ("other", "u1"), ("tags", "%")):
        assert not await threads.list(owner=_MINE, metadata=[absent, tag]), absent
    assert not await threads.list(owner=_YOURS, metadata=[user])
    assert len(await threads.list(owner=_MINE)) == 2
