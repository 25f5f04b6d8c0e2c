"""Database connection and catalog: SQLite in the home folder, or any ``DATABASE_URL``."""

from __future__ import annotations

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
from bythebook.indexing.passage_records import from_record, to_record
from bythebook.interfaces.store import Generation, StoredVectors
from bythebook.providers.sql import schema as tables
from bythebook.types import Passage, VectorState

if TYPE_CHECKING:
    from collections.abc import Callable

    from alembic.config import Config

try:
    import fcntl
except ModuleNotFoundError:
    raise ConfigurationError("Windows is not supported.", hint="Use Linux, macOS or WSL.") from None

P = ParamSpec("P")
T = TypeVar("T")

_CHECK = "Check DATABASE_URL or the home folder."
_PSYCOPG = "postgresql+psycopg"
_ENGINE: dict[str, dict[str, Any]] = {
    _PSYCOPG: {
        "pool_pre_ping": True,  # no request fails after a server restart
        "connect_args": {
            "connect_timeout": 2,  # seconds, the minimum of libpq
            # A server that disappears silently is detected in seconds instead of hours.
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
        },
    }
}
_INGEST_LOCK, _MIGRATION_LOCK = 0xB00C, 0xB00D  # PostgreSQL's advisory locks are numbers
_IN_CLAUSE = 500  # SQLite limits the number of variables


def translated(method: Callable[P, T]) -> Callable[P, T]:
    """Translate all database errors to DatabaseFailed."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except sa.exc.DatabaseError as error:
            raise _failure(error) from error
        except (SQLAlchemyError, ValueError) as error:
            raise DatabaseFailed("The database did not answer.", hint=_CHECK) from error

    return call


def _failure(error: sa.exc.DatabaseError) -> DatabaseFailed:
    damaged = ("not a database", "malformed", "no such table", "no such column")
    if any(sign in str(error.orig) for sign in damaged):
        return _damaged()
    if "disk is full" in str(error.orig):
        return DatabaseFailed("The disk is full.", hint="Make room where the home folder is.")
    return DatabaseFailed("The database did not answer.", hint=_CHECK)


def _damaged() -> DatabaseFailed:
    return DatabaseFailed(
        "The database is damaged.", hint="Move the home folder away and ingest the book again."
    )


@translated
def open_database(url: str | None, home: Path) -> sa.Engine:
    """Return an engine for the database, after migrating it to the newest schema."""
    engine = _embedded(home) if url is None else _engine(url)
    revision = _revision(engine)
    if revision is not None and revision > tables.HEAD:
        raise ConfigurationError(
            "The database was made by a newer version.", hint="Update bythebook, or use its home."
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
            f"The home {home} cannot be made: {error.strerror}.", hint="Choose another with --home."
        ) from None
    if file.exists() and not os.access(home, os.W_OK):
        # A book on a read-only disk can still be queried; nothing there can change meanwhile.
        return _engine(f"sqlite:///file:{quote(str(file.resolve()))}?immutable=1&uri=true")
    return _engine(f"sqlite:///{file}")


def _engine(url: str) -> sa.Engine:
    try:
        address = _with_driver(sa.make_url(url))
        engine = sa.create_engine(address, **_ENGINE.get(address.drivername, {}))
    except sa.exc.ArgumentError:
        raise ConfigurationError(
            "DATABASE_URL is not the address of a database.",
            hint="Write it as sqlite:///file or postgresql://user@host/name.",
        ) from None
    except ModuleNotFoundError as error:
        install = '"bythebook[postgres]"' if error.name == "psycopg" else error.name
        raise UnknownProvider(
            f"This database needs the package {error.name}.", hint=f"Run: pip install {install}"
        ) from None
    if engine.dialect.name == "sqlite" and "immutable" not in address.query:
        sa.event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _with_driver(address: sa.URL) -> sa.URL:
    """Use psycopg 3 for ``postgres://`` and ``postgresql://``, as hosting providers write them."""
    plain = address.drivername in ("postgres", "postgresql")
    return address.set(drivername=_PSYCOPG) if plain else address


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

    with engine.begin() as connection:
        # Workers start together: one migrates, the others wait and find it done. On SQLite this
        # also makes it one transaction: Python's driver begins none for a schema change.
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        command.upgrade(migrations(connection), "head")


def migrations(connection: sa.Connection) -> Config:
    """Return an Alembic configuration for our migrations on this connection."""
    from alembic.config import Config

    config = Config()
    folder = resources.files("bythebook.providers.sql").joinpath("migrations")
    config.set_main_option("script_location", str(folder))
    config.attributes["connection"] = connection
    return config


def insert_new(connection: sa.Connection, table: sa.Table) -> Any:
    """Return an INSERT that leaves existing rows unchanged."""
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()


def aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite stores no time zone


class SqlCatalog:
    def __init__(self, engine: sa.Engine, home: Path) -> None:
        self._engine = engine
        self._home = home

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        """Hold the ingest lock; kernel and server release it when the process ends in any way."""
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "ingest.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _ingest_running("home") from None
            with self._alone_on_the_server():
                yield

    @contextmanager
    def _alone_on_the_server(self) -> Iterator[None]:
        """Hold a database lock too: other machines, with other homes, may use the same database."""
        if self._engine.dialect.name != "postgresql":
            yield
            return
        held = translated(self._engine.connect)()
        try:
            lock = sa.select(sa.func.pg_try_advisory_lock(_INGEST_LOCK))
            if not translated(held.execute)(lock).scalar():
                raise _ingest_running("database")
            held.commit()  # the lock belongs to the session, not to a transaction
            yield
        finally:
            held.invalidate()  # closing the session releases the lock
            held.close()

    @translated
    def identity(self) -> str:
        """Return the 32 hex digits that identify this book, stored in its database."""
        name = sa.select(tables.identity.c.name).where(tables.identity.c.id == 1)
        with self._engine.connect() as connection:
            return str(connection.execute(name).scalar_one())

    @translated
    def passages(self) -> dict[str, Passage]:
        column = tables.passages.c
        query = sa.select(column.id, column.record).order_by(column.seq)
        with self._engine.connect() as connection:
            return {row.id: _passage(row.record) for row in connection.execute(query)}

    @translated
    def known_vectors(self, embedder: str) -> set[str]:
        query = sa.select(tables.vectors.c.key).where(tables.vectors.c.embedder == embedder)
        with self._engine.connect() as connection:
            return set(connection.execute(query).scalars())

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

    @translated
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

    @translated
    def served(self) -> str | None:
        with self._engine.connect() as connection:
            return connection.execute(_SERVED).scalar_one_or_none()


_SERVED = sa.select(tables.served.c.generation)


def _ingest_running(where: str) -> IngestRunning:
    return IngestRunning(
        f"Another ingest is at work on this {where}.", hint="Wait until it has finished."
    )


def _forget_vectors(connection: sa.Connection, embedder: str, keep: Set[str]) -> None:
    column = tables.vectors.c
    known = connection.execute(sa.select(column.key).where(column.embedder == embedder)).scalars()
    stale = sorted(set(known) - keep)
    for start in range(0, len(stale), _IN_CLAUSE):
        some = column.key.in_(stale[start : start + _IN_CLAUSE])
        connection.execute(sa.delete(tables.vectors).where(column.embedder == embedder, some))


def _passage(record: Any) -> Passage:
    try:
        return from_record(record)
    except (LookupError, TypeError, ValueError) as error:
        raise _damaged() from error


def _passage_row(passage: Passage, seq: int) -> dict[str, Any]:
    return {
        "id": passage.id,
        "file": passage.place.file,
        "position": passage.position,
        "content_hash": passage.content_hash,
        "record": to_record(passage),
        "seq": seq,
    }
