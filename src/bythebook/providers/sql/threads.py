"""Conversation threads in SQL: one row per message, numbered within its thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from bythebook.conversations.summary import summarise
from bythebook.conversations.threads import (
    LIVE_MESSAGES,
    citation_from_record,
    citation_to_record,
    in_turn,
    no_such_thread,
)
from bythebook.interfaces.conversations import ANYONE, Owner, ThreadSummary
from bythebook.providers.sql.catalog import aware, insert_new, translated
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.providers.sql.schema import chores, messages, threads
from bythebook.types import Message, Role, Thread

if TYPE_CHECKING:
    from sqlalchemy.engine import Row

_TRIES = 3  # attempts to lock a thread that others delete concurrently
_TOLD = ("content", "confidence", "citations")  # the columns that a repeated answer replaces


class SqlThreads:
    """ThreadStore and Attic in SQL; every call is limited by the deadline."""

    def __init__(self, engine: sa.Engine, *, deadline_s: float = 1.0) -> None:
        self._engine = engine
        self._executor = DeadlineExecutor(deadline_s=deadline_s)
        # SQLite has one writer at a time, and a writer that finds it locked sleeps too long.
        alone = engine.dialect.name == "sqlite"
        self._turn: AbstractContextManager[object] = threading.Lock() if alone else nullcontext()

    async def read(self, thread_id: str, *, owner: Owner, whole: bool = False) -> Thread | None:
        thread = await self._executor.do(partial(self._read, thread_id, whole=whole))
        if thread is not None and owner not in (ANYONE, thread.owner):
            raise no_such_thread()
        return thread

    async def append(
        self, thread_id: str, messages: Sequence[Message], *, owner: str | None
    ) -> Thread:
        return await self._executor.do(partial(self._append, thread_id, messages, owner))

    async def list(
        self, *, owner: Owner, limit: int = 20, offset: int = 0
    ) -> Sequence[ThreadSummary]:
        return await self._executor.do(partial(self._list, owner, limit, offset))

    async def delete(self, thread_id: str, *, owner: Owner) -> bool:
        return await self._executor.do(partial(self._delete, thread_id, owner))

    async def claim(self, chore: str, *, now: datetime, every: timedelta) -> bool:
        return await self._executor.do(partial(self._claim, chore, now, every))

    async def archive(
        self, *, before: datetime, now: datetime, limit: int, only: str | None = None
    ) -> int:
        return await self._executor.do(partial(self._archive, before, now, limit, only))

    async def purge(self, *, before: datetime, limit: int) -> int:
        return await self._executor.do(partial(self._purge, before, limit))

    async def close(self) -> None:
        self._executor.close()
        await asyncio.to_thread(self._engine.dispose)

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with self._turn, self._engine.begin() as connection:
            yield connection
            self._executor.check_wanted()

    @translated
    def _read(self, thread_id: str, *, whole: bool) -> Thread | None:
        with self._engine.connect() as connection:
            return _load(connection, thread_id, whole=whole)

    @translated
    def _append(self, thread_id: str, said: Sequence[Message], owner: str | None) -> Thread:
        with self._transaction() as connection:
            _take(connection, thread_id, owner, said[0].timestamp)
            before = _load(connection, thread_id, whole=False)
            assert before is not None
            brought = _brought_by(connection, thread_id, said[0].request)
            if brought is None:
                _add(connection, before, said)
            else:
                _replace(connection, thread_id, brought, said)
            written = _load(connection, thread_id, whole=False)
            assert written is not None
            topics, last = summarise(written.messages), written.messages[-1].timestamp
            update = sa.update(threads).where(threads.c.thread_id == thread_id)
            connection.execute(update.values(updated_at=_utc(last), topic_summary=topics))
        return replace(written, updated_at=last, topic_summary=topics)

    @translated
    def _list(self, owner: Owner, limit: int, offset: int) -> Sequence[ThreadSummary]:
        of_thread = messages.c.thread_id == threads.c.thread_id
        last = sa.select(sa.func.max(messages.c.seq)).where(of_thread).scalar_subquery()
        query = sa.select(threads, last.label("last")).where(*_owned_by(owner))
        query = query.order_by(threads.c.updated_at.desc(), threads.c.thread_id)
        with self._engine.connect() as connection:
            return [_summary(row) for row in connection.execute(query.limit(limit).offset(offset))]

    @translated
    def _delete(self, thread_id: str, owner: Owner) -> bool:
        delete = sa.delete(threads).where(threads.c.thread_id == thread_id, *_owned_by(owner))
        with self._transaction() as connection:
            return bool(connection.execute(delete).rowcount)

    @translated
    def _claim(self, chore: str, now: datetime, every: timedelta) -> bool:
        due = sa.update(chores).where(chores.c.name == chore, chores.c.due_at <= _utc(now))
        again = _utc(now + every)
        with self._transaction() as connection:
            if connection.execute(due.values(due_at=again)).rowcount:
                return True
            first = insert_new(connection, chores).values(name=chore, due_at=again)
            return connection.execute(first.returning(chores.c.name)).first() is not None

    @translated
    def _archive(self, before: datetime, now: datetime, limit: int, only: str | None) -> int:
        wanted = [threads.c.archived_at.is_(None), threads.c.updated_at < _utc(before)]
        if only is not None:
            wanted.append(threads.c.thread_id == only)
        with self._transaction() as connection:
            some = _some(connection, wanted, limit)
            update = sa.update(threads).where(*some).values(archived_at=_utc(now))
            return connection.execute(update).rowcount

    @translated
    def _purge(self, before: datetime, limit: int) -> int:
        old = [threads.c.updated_at < _utc(before)]
        with self._transaction() as connection:
            some = _some(connection, old, limit)
            return connection.execute(sa.delete(threads).where(*some)).rowcount


def _take(connection: sa.Connection, thread_id: str, owner: str | None, now: datetime) -> None:
    """Lock the thread's row until the transaction ends, which serialises its writers."""
    row = {"thread_id": thread_id, "created_at": _utc(now), "updated_at": _utc(now), "owner": owner}
    mine = sa.update(threads).where(threads.c.thread_id == thread_id, *_owned_by(owner))
    for _ in range(_TRIES):
        connection.execute(insert_new(connection, threads).values(**row, metadata={}))
        if connection.execute(mine.values(archived_at=None)).rowcount:
            return
    raise no_such_thread()


def _brought_by(connection: sa.Connection, thread_id: str, request: str | None) -> int | None:
    """Return the number of the message that this request stored before, if any."""
    if request is None:
        return None
    column = messages.c
    query = sa.select(column.seq).where(column.thread_id == thread_id, column.request == request)
    return connection.execute(query).scalar_one_or_none()


def _add(connection: sa.Connection, thread: Thread, said: Sequence[Message]) -> None:
    kept = in_turn(thread.messages[-1] if thread.messages else None, said)
    first = thread.earlier + len(thread.messages)
    rows = [_row(thread.id, seq, message) for seq, message in enumerate(kept, first)]
    connection.execute(sa.insert(messages), rows)


def _replace(
    connection: sa.Connection, thread_id: str, first: int, said: Sequence[Message]
) -> None:
    """Replace the content of messages; position and time stay those of the first attempt."""
    for seq, message in enumerate(said, first):
        row = _row(thread_id, seq, message)
        update = sa.update(messages).where(
            messages.c.thread_id == thread_id, messages.c.seq == seq, messages.c.role == row["role"]
        )
        connection.execute(update.values({name: row[name] for name in _TOLD}))


def _load(connection: sa.Connection, thread_id: str, *, whole: bool) -> Thread | None:
    """Load thread and messages in one statement, hence as a consistent snapshot."""
    shown = sa.select(messages).where(messages.c.thread_id == thread_id)
    shown = shown.order_by(messages.c.seq.desc()).limit(None if whole else LIVE_MESSAGES)
    newest = shown.subquery("newest")
    query = sa.select(threads, newest).where(threads.c.thread_id == thread_id)
    query = query.outerjoin_from(threads, newest, newest.c.thread_id == threads.c.thread_id)
    rows = connection.execute(query.order_by(newest.c.seq)).all()
    if not rows:
        return None
    known = rows[0]._mapping
    archived_at = known[threads.c.archived_at]
    return Thread(
        id=known[threads.c.thread_id],
        messages=tuple(_message(row) for row in rows if row.seq is not None),
        created_at=aware(known[threads.c.created_at]),
        updated_at=aware(known[threads.c.updated_at]),
        topic_summary=known[threads.c.topic_summary],
        metadata=known[threads.c.metadata],
        owner=known[threads.c.owner],
        archived_at=None if archived_at is None else aware(archived_at),
        earlier=rows[0].seq or 0,
    )


def _some(
    connection: sa.Connection, wanted: Sequence[sa.ColumnElement[bool]], limit: int
) -> Sequence[sa.ColumnElement[bool]]:
    """Return conditions that select up to ``limit`` wanted threads, skipping locked ones.

    The ids are selected in a separate statement: PostgreSQL may rerun a subquery with a limit for
    every row. PostgreSQL has then locked the rows and the ids suffice; repeating the conditions
    would make it scan every matching thread. On SQLite the rows may have changed since.
    """
    idle = sa.select(threads.c.thread_id).where(*wanted).order_by(threads.c.updated_at)
    idle = idle.limit(limit).with_for_update(skip_locked=True)
    named = threads.c.thread_id.in_(connection.execute(idle).scalars().all())
    return [named, *wanted] if connection.dialect.name == "sqlite" else [named]


def _owned_by(owner: Owner) -> list[sa.ColumnElement[bool]]:
    if owner is ANYONE:
        return []
    return [threads.c.owner.is_(None) if owner is None else threads.c.owner == owner]


def _row(thread_id: str, seq: int, message: Message) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "seq": seq,
        "role": message.role.value,
        "content": message.content,
        "timestamp": _utc(message.timestamp),
        "confidence": message.confidence,
        "citations": [citation_to_record(citation) for citation in message.citations],
        "request": message.request,
    }


def _message(row: Row[Any]) -> Message:
    return Message(
        Role(row.role),
        row.content,
        aware(row.timestamp),
        row.confidence,
        citations=tuple(map(citation_from_record, row.citations or ())),
        request=row.request,
    )


def _summary(row: Row[Any]) -> ThreadSummary:
    return ThreadSummary(
        id=row.thread_id,
        created_at=aware(row.created_at),
        updated_at=aware(row.updated_at),
        messages=0 if row.last is None else row.last + 1,
        topic_summary=row.topic_summary,
        owner=row.owner,
        archived_at=None if row.archived_at is None else aware(row.archived_at),
    )


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
