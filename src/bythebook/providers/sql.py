"""The catalog and the threads in SQL: SQLite in the home folder, or any ``DATABASE_URL``."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import quote

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from bythebook.errors import ConfigurationError, DatabaseFailed, IngestRunning, UnknownProvider
from bythebook.index.catalog import from_record, to_record
from bythebook.model import Message, Passage, Role, Thread, VectorState
from bythebook.ports import Generation, StoredVectors
from bythebook.providers import tables

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

_CHECK = "Check DATABASE_URL or the home folder."
_LIVE_MESSAGES = 50  # S4: "messages limited to last 50 messages"
_IN_CLAUSE = 500  # SQLite takes a limited number of variables


def _translated(method: Callable[P, T]) -> Callable[P, T]:
    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except sa.exc.DatabaseError as error:
            raise _failure(error) from error
        except (SQLAlchemyError, ValueError) as error:
            raise DatabaseFailed("The database did not answer.", cure=_CHECK) from error

    return call


def _failure(error: sa.exc.DatabaseError) -> DatabaseFailed:
    damaged = ("not a database", "malformed", "no such table", "no such column")
    if any(sign in str(error.orig) for sign in damaged):
        return DatabaseFailed(
            "The database is damaged.", cure="Move the home folder away and ingest the book again."
        )
    if "disk is full" in str(error.orig):
        return DatabaseFailed("The disk is full.", cure="Make room where the home folder is.")
    return DatabaseFailed("The database did not answer.", cure=_CHECK)


@_translated
def open_database(url: str | None, home: Path) -> sa.Engine:
    """An engine on a database that has the newest schema."""
    engine = _embedded(home) if url is None else _engine(url)
    revision = _revision(engine)
    if revision is not None and revision > tables.HEAD:
        raise ConfigurationError(
            "The database was made by a newer version.", cure="Update bythebook, or use its home."
        )
    if revision != tables.HEAD:
        _migrate(engine)
    return engine


def _embedded(home: Path) -> sa.Engine:
    file = home / "bythebook.db"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"The home {home} cannot be made: {error.strerror}.", cure="Choose another with --home."
        ) from None
    if file.exists() and not os.access(home, os.W_OK):
        # A book on a read-only disk can still be asked; nothing there can change under us.
        return _engine(f"sqlite:///file:{quote(str(file.resolve()))}?immutable=1&uri=true")
    engine = _engine(f"sqlite:///{file}")
    sa.event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _engine(url: str) -> sa.Engine:
    try:
        return sa.create_engine(url)
    except sa.exc.ArgumentError:
        raise ConfigurationError(
            "DATABASE_URL is not the address of a database.",
            cure="Write it as sqlite:///file or postgresql+psycopg://user@host/name.",
        ) from None
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"This database needs the package {error.name}.", cure=f"Run: pip install {error.name}"
        ) from None


def _prepare_sqlite(connection: Any, record: object) -> None:
    del record
    cursor = connection.cursor()
    # FULL: what was acknowledged survives a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _revision(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _migrate(engine: sa.Engine) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = resources.files("bythebook.providers").joinpath("migrations")
    config.set_main_option("script_location", str(folder))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


class SqlCatalog:
    def __init__(self, engine: sa.Engine, home: Path) -> None:
        self._engine = engine
        self._home = home

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        """The kernel drops this lock with the process that held it, however it ends."""
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "ingest.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IngestRunning(
                    "Another ingest is at work on this home.", cure="Wait until it has finished."
                ) from None
            yield

    @_translated
    def passages(self) -> dict[str, Passage]:
        query = sa.select(tables.passages.c.id, tables.passages.c.record)
        with self._engine.connect() as connection:
            return {row.id: from_record(row.record) for row in connection.execute(query)}

    @_translated
    def known_vectors(self, embedder: str) -> set[str]:
        query = sa.select(tables.vectors.c.key).where(tables.vectors.c.embedder == embedder)
        with self._engine.connect() as connection:
            return set(connection.execute(query).scalars())

    @_translated
    def add_vectors(self, embedder: str, vectors: Sequence[StoredVectors]) -> None:
        rows = [
            {
                "embedder": embedder,
                "key": stored.key,
                "vector": stored.vector.astype("<f4").tobytes(),
                "unit_vectors": stored.unit_vectors.astype("<f4").tobytes(),
            }
            for stored in vectors
        ]
        with self._engine.begin() as connection:
            connection.execute(sa.insert(tables.vectors), rows)

    @_translated
    def vectors(self, embedder: str, keys: Sequence[str]) -> dict[str, StoredVectors]:
        found: dict[str, StoredVectors] = {}
        column = tables.vectors.c
        with self._engine.connect() as connection:
            for start in range(0, len(keys), _IN_CLAUSE):
                some = keys[start : start + _IN_CLAUSE]
                query = sa.select(tables.vectors).where(
                    column.embedder == embedder, column.key.in_(some)
                )
                for row in connection.execute(query):
                    vector = np.frombuffer(row.vector, dtype="<f4")
                    units = np.frombuffer(row.unit_vectors, dtype="<f4").reshape(-1, len(vector))
                    found[row.key] = StoredVectors(row.key, vector, units)
        return found

    @_translated
    def commit(
        self, passages: Sequence[Passage], generation: Generation, *, keep_vectors: Set[str]
    ) -> None:
        served = {
            "id": 1,
            "generation": generation.name,
            "embedder": generation.embedder,
            "dimension": generation.dimension,
            "passages": generation.passages,
            "fingerprint": generation.fingerprint,
            "vocabulary": generation.vocabulary,
            "origin": generation.origin,
            "published_at": datetime.now(UTC),
            "vectors": generation.vectors.value,
            "calibration": generation.calibration,
        }
        with self._engine.begin() as connection:
            connection.execute(sa.delete(tables.passages))
            if passages:
                rows = [_passage_row(passage) for passage in passages]
                connection.execute(sa.insert(tables.passages), rows)
            connection.execute(sa.delete(tables.served))
            connection.execute(sa.insert(tables.served), [served])
            _forget_vectors(connection, generation.embedder, keep_vectors)

    @_translated
    def current(self) -> Generation | None:
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(tables.served)).one_or_none()
        if row is None:
            return None
        return Generation(
            name=row.generation,
            embedder=row.embedder,
            dimension=row.dimension,
            passages=row.passages,
            fingerprint=row.fingerprint,
            vocabulary=row.vocabulary,
            origin=row.origin,
            vectors=VectorState(row.vectors),
            calibration=row.calibration,
        )

    @_translated
    def served(self) -> str | None:
        with self._engine.connect() as connection:
            return connection.execute(_SERVED).scalar_one_or_none()


_SERVED = sa.select(tables.served.c.generation)


def _forget_vectors(connection: sa.Connection, embedder: str, keep: Set[str]) -> None:
    column = tables.vectors.c
    known = connection.execute(sa.select(column.key).where(column.embedder == embedder)).scalars()
    stale = sorted(set(known) - keep)
    for start in range(0, len(stale), _IN_CLAUSE):
        some = column.key.in_(stale[start : start + _IN_CLAUSE])
        connection.execute(sa.delete(tables.vectors).where(column.embedder == embedder, some))


def _passage_row(passage: Passage) -> dict[str, Any]:
    return {
        "id": passage.id,
        "file": passage.place.file,
        "position": passage.position,
        "content_hash": passage.content_hash,
        "record": to_record(passage),
    }


class SqlThreads:
    """One row per message, numbered within its thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    async def read(self, thread_id: str) -> Thread | None:
        return await asyncio.to_thread(self._read, thread_id)

    async def append(self, thread_id: str, messages: Sequence[Message]) -> Thread:
        await asyncio.to_thread(self._append, thread_id, messages)
        thread = await asyncio.to_thread(self._read, thread_id)
        assert thread is not None
        return thread

    async def delete(self, thread_id: str) -> bool:
        return await asyncio.to_thread(self._delete, thread_id)

    async def close(self) -> None:
        await asyncio.to_thread(self._engine.dispose)

    @_translated
    def _read(self, thread_id: str) -> Thread | None:
        of_thread = tables.messages.c.thread_id == thread_id
        newest = sa.select(tables.messages).where(of_thread)
        newest = newest.order_by(tables.messages.c.seq.desc()).limit(_LIVE_MESSAGES)
        with self._engine.connect() as connection:
            one = sa.select(tables.threads).where(tables.threads.c.thread_id == thread_id)
            row = connection.execute(one).one_or_none()
            rows = connection.execute(newest).all()
        if row is None:
            return None
        return Thread(
            id=row.thread_id,
            messages=tuple(_message(message) for message in reversed(rows)),
            created_at=_aware(row.created_at),
            updated_at=_aware(row.updated_at),
            topic_summary=row.topic_summary,
            metadata=row.metadata,
        )

    @_translated
    def _append(self, thread_id: str, messages: Sequence[Message]) -> None:
        column = tables.messages.c
        with self._engine.begin() as connection:
            # The thread's row first: it orders writers of one thread on either database.
            self._touch(connection, thread_id, messages[0].timestamp, messages[-1].timestamp)
            last = sa.select(sa.func.max(column.seq)).where(column.thread_id == thread_id)
            seq = connection.execute(last).scalar()
            rows = [
                {
                    "thread_id": thread_id,
                    "seq": number,
                    "role": message.role.value,
                    "content": message.content,
                    "timestamp": message.timestamp,
                    "confidence": message.confidence,
                }
                for number, message in enumerate(messages, 0 if seq is None else seq + 1)
            ]
            connection.execute(sa.insert(tables.messages), rows)

    def _touch(self, connection: Any, thread_id: str, created: datetime, now: datetime) -> None:
        column = tables.threads.c
        update = sa.update(tables.threads).where(column.thread_id == thread_id)
        if connection.execute(update.values(updated_at=now)).rowcount == 0:
            row = {"thread_id": thread_id, "created_at": created, "updated_at": now, "metadata": {}}
            connection.execute(sa.insert(tables.threads), [row])

    @_translated
    def _delete(self, thread_id: str) -> bool:
        delete = sa.delete(tables.threads).where(tables.threads.c.thread_id == thread_id)
        with self._engine.begin() as connection:
            return bool(connection.execute(delete).rowcount)


def _message(row: Any) -> Message:
    return Message(Role(row.role), row.content, _aware(row.timestamp), row.confidence)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite keeps no time zone
