"""The catalog in SQL: passages, vectors and the generation being served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from bythebook.errors import ConfigurationError, IngestRunning
from bythebook.interfaces.store import Generation, StoredVectors
from bythebook.providers.sql import schema as tables
from bythebook.providers.sql.engine import damaged, translated
from bythebook.text.passage_records import from_record, to_record
from bythebook.types import Passage, VectorState

try:
    import fcntl
except ModuleNotFoundError:
    raise ConfigurationError("Windows is not supported.", hint="Use Linux, macOS or WSL.") from None

_INGEST_LOCK = 0xB00C  # PostgreSQL's advisory locks are numbers
_SERVED = sa.select(tables.served.c.generation)
_IN_CLAUSE = 500  # SQLite limits the number of variables
# The columns of `served` that a Generation has under the same name.
_GENERATION = (
    "embedder",
    "dimension",
    "passages",
    "fingerprint",
    "vocabulary",
    "origin",
    "calibration",
)


class SqlCatalog:
    def __init__(self, engine: sa.Engine, home: Path | None) -> None:
        self._engine = engine
        self._home = home

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        """Hold the ingest lock; kernel and server release it when the process ends in any way."""
        if self._home is None:  # a database in memory, which no other process can open
            yield
            return
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._home / "ingest.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _ingest_running("home") from None
            with self._database_lock():
                yield

    @contextmanager
    def _database_lock(self) -> Iterator[None]:
        """Hold a database lock too: other machines, with other homes, may use the same database."""
        if self._engine.dialect.name != "postgresql":
            yield
            return
        session = translated(self._engine.connect)()
        try:
            lock = sa.select(sa.func.pg_try_advisory_lock(_INGEST_LOCK))
            if not translated(session.execute)(lock).scalar():
                raise _ingest_running("database")
            session.commit()  # the lock belongs to the session, not to a transaction
            yield
        finally:
            session.invalidate()  # closing the session releases the lock
            session.close()

    @translated
    def identity(self) -> str:
        """Return the 32 hex digits that identify this book, stored in its database."""
        query = sa.select(tables.identity.c.name).where(tables.identity.c.id == 1)
        with self._engine.connect() as connection:
            return str(connection.execute(query).scalar_one())

    @translated
    def passages(self) -> dict[str, Passage]:
        column = tables.passages.c
        query = sa.select(column.id, column.record).order_by(column.seq)
        with self._engine.connect() as connection:
            return {row.id: _passage(row.record) for row in connection.execute(query)}

    @translated
    def known_vectors(self, embedder: str) -> set[str]:
        with self._engine.connect() as connection:
            return _keys(connection, embedder)

    @translated
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

    @translated
    def vectors(self, embedder: str, keys: Sequence[str]) -> dict[str, StoredVectors]:
        stored: dict[str, StoredVectors] = {}
        with self._engine.connect() as connection:
            for batch in _batches(embedder, keys):
                for row in connection.execute(sa.select(tables.vectors).where(batch)):
                    vector = np.frombuffer(row.vector, dtype="<f4")
                    units = np.frombuffer(row.unit_vectors, dtype="<f4").reshape(-1, len(vector))
                    stored[row.key] = StoredVectors(row.key, vector, units)
        return stored

    @translated
    def commit(
        self, passages: Sequence[Passage], generation: Generation, *, keep_vectors: Set[str]
    ) -> None:
        served = {
            "id": 1,
            "generation": generation.name,
            "published_at": datetime.now(UTC),
            "vectors": generation.vectors.value,
            **{name: getattr(generation, name) for name in _GENERATION},
        }
        with self._engine.begin() as connection:
            connection.execute(sa.delete(tables.passages))
            if passages:
                rows = [_passage_row(passage, seq) for seq, passage in enumerate(passages)]
                connection.execute(sa.insert(tables.passages), rows)
            connection.execute(sa.delete(tables.served))
            connection.execute(sa.insert(tables.served), [served])
            _forget_vectors(connection, generation.embedder, keep_vectors)

    @translated
    def current(self) -> Generation | None:
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(tables.served)).one_or_none()
        if row is None:
            return None
        same = {name: getattr(row, name) for name in _GENERATION}
        return Generation(
            name=row.generation,
            vectors=VectorState(row.vectors),
            published_at=row.published_at,
            **same,
        )

    @translated
    def served(self) -> str | None:
        with self._engine.connect() as connection:
            return connection.execute(_SERVED).scalar_one_or_none()


def _ingest_running(where: str) -> IngestRunning:
    return IngestRunning(
        f"Another ingest is running on this {where}.", hint="Wait until it has finished."
    )


def _forget_vectors(connection: sa.Connection, embedder: str, keep: Set[str]) -> None:
    for batch in _batches(embedder, sorted(_keys(connection, embedder) - keep)):
        connection.execute(sa.delete(tables.vectors).where(batch))


def _keys(connection: sa.Connection, embedder: str) -> set[str]:
    query = sa.select(tables.vectors.c.key).where(tables.vectors.c.embedder == embedder)
    return set(connection.execute(query).scalars())


def _batches(embedder: str, keys: Sequence[str]) -> Iterator[sa.ColumnElement[bool]]:
    """Yield conditions that select the vectors of these keys, some keys at a time."""
    column = tables.vectors.c
    for start in range(0, len(keys), _IN_CLAUSE):
        some = keys[start : start + _IN_CLAUSE]
        yield (column.embedder == embedder) & column.key.in_(some)


def _passage(record: Any) -> Passage:
    try:
        return from_record(record)
    except (LookupError, TypeError, ValueError) as error:
        raise damaged() from error


def _passage_row(passage: Passage, seq: int) -> dict[str, Any]:
    return {
        "id": passage.id,
        "file": passage.place.file,
        "position": passage.position,
        "content_hash": passage.content_hash,
        "record": to_record(passage),
        "seq": seq,
    }
