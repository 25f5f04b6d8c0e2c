"""Conversation threads in SQL: one row per message, numbered within its thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from bythebook.errors import InvalidInput
from bythebook.interfaces.conversations import (
    ANYONE,
    Owner,
    Summarise,
    Thread,
    ThreadSummary,
    no_such_thread,
)
from bythebook.providers.sql.engine import SqlStore, insert, on_database_thread
from bythebook.providers.sql.schema import chores, messages, threads
from bythebook.types import Citation, Message, Place, Role

if TYPE_CHECKING:
    from sqlalchemy.engine import Row

LIVE_MESSAGES = 50  # chat: "messages limited to last 50 messages (older messages archived)"
_TRIES = 3  # attempts to lock a thread that others delete concurrently
_REPLACED = ("content", "confidence", "citations")  # the columns that a repeated answer replaces


class SqlThreads(SqlStore):
    """Conversations that users asked to keep, each bound to its owner, and their archive.

    Every call is one short transaction, limited by the deadline.
    """

    def __init__(self, engine: sa.Engine, *, deadline_s: float = 1.0) -> None:
        super().__init__(engine, deadline_s=deadline_s)
        # SQLite has one writer at a time, and a writer that finds it locked sleeps too long.
        one_writer = engine.dialect.name == "sqlite"
        self._turn: AbstractContextManager[object] = (
            threading.Lock() if one_writer else nullcontext()
        )

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with self._turn, super()._transaction() as connection:
            yield connection

    @on_database_thread()
    def read(self, thread_id: str, *, owner: Owner, whole: bool = False) -> Thread | None:
        """Return the thread with its last 50 messages (all if ``whole``), or None if unknown.

        Raise NotFound for another owner's thread. Clients cannot distinguish the two cases.
        """
        with self._engine.connect() as connection:
            thread = _load(connection, thread_id, whole=whole)
        if thread is not None and owner not in (ANYONE, thread.owner):
            raise no_such_thread()
        return thread

    @on_database_thread()
    def append(
        self,
        thread_id: str,
        messages: Sequence[Message],
        *,
        owner: str | None,
        summarise: Summarise | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Thread:
        """Append messages atomically and in sequence, creating or resuming the thread.

        Raise NotFound for another owner's thread. If the first message's ``request`` is already
        in the thread, the messages replace those of that earlier attempt. ``summarise`` computes
        the new topic summary from the live messages; without it the summary stays. ``metadata``
        is merged into the thread's.
        """
        with self._transaction() as connection:
            _lock(connection, thread_id, owner, messages[0].timestamp)
            before = _load(connection, thread_id)
            assert before is not None
            earlier_attempt = _first_message_of(connection, thread_id, messages[0].request)
            if earlier_attempt is None:
                _add(connection, before, messages)
            else:
                _replace(connection, thread_id, earlier_attempt, messages)
            written = _load(connection, thread_id)
            assert written is not None
            topics = summarise(written.messages) if summarise else written.topic_summary
            last = written.messages[-1].timestamp
            update = sa.update(threads).where(threads.c.thread_id == thread_id)
            merged = {**written.metadata, **(metadata or {})}
            columns = {"updated_at": last, "topic_summary": topics, "metadata": merged}
            connection.execute(update.values(columns))
        return replace(written, updated_at=last, topic_summary=topics, metadata=merged)

    @on_database_thread()
    def list(
        self,
        *,
        owner: Owner,
        limit: int = 20,
        offset: int = 0,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> Sequence[ThreadSummary]:
        """Return one page of summaries, most recently updated first.

        With ``metadata``, only of threads with these keys and values, or lists that contain them.
        """
        of_thread = messages.c.thread_id == threads.c.thread_id
        last = sa.select(sa.func.max(messages.c.seq)).where(of_thread).scalar_subquery()
        query = sa.select(threads, last.label("last")).where(*_owned_by(owner))
        query = query.where(*_with_metadata(metadata))
        query = query.order_by(threads.c.updated_at.desc(), threads.c.thread_id)
        with self._engine.connect() as connection:
            return [_summary(row) for row in connection.execute(query.limit(limit).offset(offset))]

    @on_database_thread()
    def delete(self, thread_id: str, *, owner: Owner) -> bool:
        """Delete the thread and return whether it existed."""
        delete = sa.delete(threads).where(threads.c.thread_id == thread_id, *_owned_by(owner))
        with self._transaction() as connection:
            return bool(connection.execute(delete).rowcount)

    @on_database_thread()
    def claim(self, chore: str, *, now: datetime, every: timedelta) -> bool:
        """Return whether this worker runs the task now: one of all workers, once in ``every``."""
        due = sa.update(chores).where(chores.c.name == chore, chores.c.due_at <= now)
        again = now + every
        with self._transaction() as connection:
            if connection.execute(due.values(due_at=again)).rowcount:
                return True
            first = insert(connection, chores).values(name=chore, due_at=again)
            first = first.on_conflict_do_nothing().returning(chores.c.name)
            return connection.execute(first).first() is not None

    @on_database_thread()
    def archive(
        self, *, before: datetime, now: datetime, limit: int, only: str | None = None
    ) -> int:
        """Archive up to ``limit`` threads with no message since ``before``; return the count."""
        idle = [threads.c.archived_at.is_(None), threads.c.updated_at < before]
        if only is not None:
            idle.append(threads.c.thread_id == only)
        with self._transaction() as connection:
            batch = _batch(connection, idle, limit)
            update = sa.update(threads).where(*batch).values(archived_at=now)
            return connection.execute(update).rowcount

    @on_database_thread()
    def purge(self, *, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` threads with no message since ``before``; return the count."""
        with self._transaction() as connection:
            batch = _batch(connection, [threads.c.updated_at < before], limit)
            return connection.execute(sa.delete(threads).where(*batch)).rowcount


def _lock(connection: sa.Connection, thread_id: str, owner: str | None, now: datetime) -> None:
    """Lock the thread's row until the transaction ends, which serialises its writers."""
    row = {"thread_id": thread_id, "created_at": now, "updated_at": now, "owner": owner}
    mine = sa.update(threads).where(threads.c.thread_id == thread_id, *_owned_by(owner))
    for _ in range(_TRIES):
        new = insert(connection, threads).on_conflict_do_nothing()
        connection.execute(new.values(**row, metadata={}))
        if connection.execute(mine.values(archived_at=None)).rowcount:
            return
    raise no_such_thread()


def _in_turn(last: Message | None, messages: Sequence[Message]) -> list[Message]:
    """Return the messages to append after ``last``: alternating roles, non-decreasing timestamps.

    The clocks of two clients may differ; messages are ordered by arrival.
    """
    kept: list[Message] = []
    for message in messages:
        expected = Role.USER if last is None or last.role is Role.ASSISTANT else Role.ASSISTANT
        if message.role is not expected:
            raise InvalidInput(
                f"The next message of this thread is the {expected.value}'s.",
                hint="Keep a question together with its answer.",
            )
        earliest = message.timestamp if last is None else last.timestamp
        last = replace(message, timestamp=max(earliest, message.timestamp))
        kept.append(last)
    return kept


def _first_message_of(connection: sa.Connection, thread_id: str, request: str | None) -> int | None:
    """Return the number of the message that this request stored before, if any."""
    if request is None:
        return None
    column = messages.c
    query = sa.select(column.seq).where(column.thread_id == thread_id, column.request == request)
    return connection.execute(query).scalar_one_or_none()


def _add(connection: sa.Connection, thread: Thread, new: Sequence[Message]) -> None:
    ordered = _in_turn(thread.messages[-1] if thread.messages else None, new)
    first = thread.earlier + len(thread.messages)
    rows = [_row(thread.id, seq, message) for seq, message in enumerate(ordered, first)]
    connection.execute(sa.insert(messages), rows)


def _replace(connection: sa.Connection, thread_id: str, first: int, new: Sequence[Message]) -> None:
    """Replace the content of messages; position and time stay those of the first attempt."""
    for seq, message in enumerate(new, first):
        row = _row(thread_id, seq, message)
        update = sa.update(messages).where(
            messages.c.thread_id == thread_id, messages.c.seq == seq, messages.c.role == row["role"]
        )
        connection.execute(update.values({name: row[name] for name in _REPLACED}))


def _load(connection: sa.Connection, thread_id: str, *, whole: bool = False) -> Thread | None:
    """Load thread and messages in one statement, hence as a consistent snapshot."""
    of_thread = sa.select(messages).where(messages.c.thread_id == thread_id)
    last = of_thread.order_by(messages.c.seq.desc()).limit(None if whole else LIVE_MESSAGES)
    newest = last.subquery("newest")
    query = sa.select(threads, newest).where(threads.c.thread_id == thread_id)
    query = query.outerjoin_from(threads, newest, newest.c.thread_id == threads.c.thread_id)
    rows = connection.execute(query.order_by(newest.c.seq)).all()
    if not rows:
        return None
    row = {column.name: rows[0]._mapping[column] for column in threads.columns}
    return Thread(
        id=thread_id,
        messages=tuple(_message(row) for row in rows if row.seq is not None),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        topic_summary=row["topic_summary"],
        metadata=row["metadata"],
        owner=row["owner"],
        archived_at=row["archived_at"],
        earlier=rows[0].seq or 0,
    )


def _batch(
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


def _with_metadata(wanted: Sequence[tuple[str, str]]) -> Iterator[sa.ColumnElement[bool]]:
    for key, value in wanted:
        stored = sa.cast(sa.type_coerce(threads.c.metadata, sa.JSON)[key].as_string(), sa.Text)
        listed = {json.dumps(value), json.dumps(value, ensure_ascii=False)}
        within = (stored.contains(text, autoescape=True) for text in sorted(listed))
        yield sa.or_(stored == value, *within)


def _row(thread_id: str, seq: int, message: Message) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "seq": seq,
        "role": message.role.value,
        "content": message.content,
        "timestamp": message.timestamp,
        "confidence": message.confidence,
        "citations": [asdict(citation) for citation in message.citations],
        "request": message.request,
    }


def _message(row: Row[Any]) -> Message:
    return Message(
        Role(row.role),
        row.content,
        row.timestamp,
        row.confidence,
        citations=tuple(map(_citation, row.citations or ())),
        request=row.request,
    )


def _citation(record: Mapping[str, Any]) -> Citation:
    place = Place(**{**record["place"], "section": tuple(record["place"]["section"])})
    return Citation(**{**record, "place": place})


def _summary(row: Row[Any]) -> ThreadSummary:
    return ThreadSummary(
        id=row.thread_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        messages=0 if row.last is None else row.last + 1,
        topic_summary=row.topic_summary,
        owner=row.owner,
        archived_at=row.archived_at,
    )
