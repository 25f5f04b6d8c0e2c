"""Database engines and the base of the SQL stores: SQLite in the home folder, or DATABASE_URL."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
import time
import uuid
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial, wraps
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from bythebook.errors import (
    RETRY_AFTER_S,
    ConfigurationError,
    DatabaseFailed,
    UnknownProvider,
)
from bythebook.providers.sql import schema as tables
from bythebook.providers.sql.executor import DeadlineExecutor

if TYPE_CHECKING:
    from alembic.config import Config

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="SqlStore")
Blocking = Callable[Concatenate[S, P], T]
Awaited = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]

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
_MIGRATION_LOCK = 0xB00D  # PostgreSQL's advisory locks are numbers
_SWEEP_S = 60
_SWITCH_PAUSE_S = 0.01  # the switch to the write-ahead log takes a few milliseconds
_LEAST_ROOM = 1 << 20  # bytes; the shared memory file of SQLite takes 32 KiB, the log grows
_DAMAGE = ("not a database", "malformed", "no such table", "no such column")


def translated(method: Callable[P, T]) -> Callable[P, T]:
    """Translate all database errors to DatabaseFailed."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (SQLAlchemyError, ValueError) as error:
            raise _failure(error) from error

    return call


def _failure(error: Exception) -> DatabaseFailed:
    reason = str(error.orig) if isinstance(error, sa.exc.DatabaseError) else ""
    if any(sign in reason for sign in _DAMAGE):
        return damaged()
    if "disk is full" in reason:
        return DatabaseFailed("The disk is full.", hint="Free space where the home folder is.")
    if "readonly database" in reason:
        return DatabaseFailed(
            "The database cannot be written.",
            hint="Check the space and rights of the home folder.",
        )
    return DatabaseFailed(
        "The database did not answer.",
        hint="Check DATABASE_URL or the home folder.",
        retry_after=RETRY_AFTER_S,
    )


def damaged() -> DatabaseFailed:
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
            "The database was created by a newer version.",
            hint="Update bythebook, or choose another home.",
        )
    if revision != tables.HEAD:
        _migrate(engine)
    return engine


@translated
def open_access_database(url: str | None, home: Path) -> sa.Engine:
    """Return an engine for rate-limit counts and stored replies.

    Without a ``url`` they get a separate file: an ingest locks the home's database while it commits
    a book, and no request should wait for that to be counted.
    """
    if url is not None:
        return open_database(url, home)
    engine = sa.create_engine(f"sqlite:///{_private(home / 'access.db')}")
    # NORMAL: consistent after a power cut; only the last counts may be lost, which is harmless.
    _prepare_sqlite(engine, "synchronous=NORMAL", "busy_timeout=2500")
    with engine.begin() as connection:
        for table in (tables.rate_windows, tables.kept_replies):
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
    return engine


def open_memory_database() -> sa.Engine:
    """Return an engine for a new SQLite database in memory; it lives as long as the engine."""
    address = f"file:{uuid.uuid4().hex}?mode=memory&cache=shared"
    connections = ExitStack()

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys=ON")
        return connections.enter_context(closing(connection))

    connect()  # keeps the database when the engine closes its connections
    # One connection: those to a shared cache would not wait for each other.
    engine = sa.create_engine(
        "sqlite://", creator=connect, poolclass=sa.QueuePool, pool_size=1, max_overflow=0
    )
    weakref.finalize(engine, connections.close)
    tables.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(tables.identity), {"id": 1, "name": uuid.uuid4().hex})
    return engine


def _embedded(home: Path) -> sa.Engine:
    file = home / "bythebook.db"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)  # it will hold conversations
    except OSError as error:
        raise ConfigurationError(
            f"The home {home} cannot be created: {error.strerror}.",
            hint="Choose another with --home.",
        ) from None
    if file.exists() and (not os.access(home, os.W_OK) or _is_full(file)):
        # A book on a read-only or full disk can still be queried; nothing there can change
        # meanwhile.
        return _engine(f"sqlite:///file:{quote(str(file.resolve()))}?immutable=1&uri=true")
    return _engine(f"sqlite:///{_private(file)}")


def _private(file: Path) -> Path:
    """Let only its owner read a new database; SQLite gives its mode to the files beside it."""
    with suppress(OSError):  # the database reports what is wrong
        os.close(os.open(file, os.O_CREAT, 0o600))
    return file


def _is_full(file: Path) -> bool:
    """Return whether there is no room for the files beside a database that nobody has open."""
    room = shutil.disk_usage(file.parent).free >= _LEAST_ROOM
    beside = (file.with_name(f"{file.name}-{end}") for end in ("wal", "shm"))
    full = not room and not any(other.exists() for other in beside)
    if full:
        _log.warning("The disk is full: nothing is stored until there is space, and a restart.")
    return full


def _engine(url: str) -> sa.Engine:
    try:
        address = _with_driver(sa.make_url(url))
        engine = sa.create_engine(address, **_ENGINE.get(address.drivername, {}))
    except sa.exc.ArgumentError:
        raise ConfigurationError(
            "DATABASE_URL is not a database URL.",
            hint="Write it as sqlite:///file or postgresql://user@host/name.",
        ) from None
    except ModuleNotFoundError as error:
        install = '"bythebook[postgres]"' if error.name == "psycopg" else error.name
        raise UnknownProvider(
            f"This database needs the package {error.name}.", hint=f"Run: pip install {install}"
        ) from None
    if engine.dialect.name == "sqlite" and "immutable" not in address.query:
        # FULL: what was acknowledged survives a power cut.
        _prepare_sqlite(engine, "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000")
    return engine


def _with_driver(address: sa.URL) -> sa.URL:
    """Use psycopg 3 for ``postgres://`` and ``postgresql://``, as hosting providers write them."""
    plain = address.drivername in ("postgres", "postgresql")
    return address.set(drivername=_PSYCOPG) if plain else address


def _prepare_sqlite(engine: sa.Engine, *pragmas: str) -> None:
    """Set these and the write-ahead log on every new connection."""

    def prepare(connection: Any, record: object) -> None:
        del record
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()
        _use_write_ahead_log(connection)

    sa.event.listen(engine, "connect", prepare)


def _use_write_ahead_log(connection: Any) -> None:
    """Switch to the write-ahead log, waiting for others that open a new database.

    SQLite's own timeout does not cover this switch: a second connection is refused at once.
    """
    (timeout_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    until = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_SWITCH_PAUSE_S)
        else:
            return


def _revision(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        revision = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if revision is None else str(revision)


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


def insert(connection: sa.Connection, table: sa.Table) -> Any:
    """Return an INSERT that supports ON CONFLICT, which each dialect implements itself."""
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)


def delete_batch(
    connection: sa.Connection, key: sa.Column[Any], *where: sa.ColumnElement[bool], limit: int
) -> int:
    """Delete up to ``limit`` rows and return their number; ``key`` is the table's primary key."""
    keys = connection.execute(sa.select(key).where(*where).limit(limit)).scalars().all()
    return connection.execute(sa.delete(key.table).where(key.in_(keys))).rowcount


class SqlStore:
    """Base of the stores whose blocking methods run on database threads with a deadline."""

    def __init__(self, engine: sa.Engine, *, threads: int = 4, deadline_s: float) -> None:
        self._engine = engine
        self._executor = DeadlineExecutor(threads, deadline_s=deadline_s)
        self._sweep_at = 0.0

    async def close(self) -> None:
        self._executor.close()
        await asyncio.to_thread(self._engine.dispose)

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        """Begin a transaction, which is rolled back if the caller has given up meanwhile."""
        with self._engine.begin() as connection:
            yield connection
            self._executor.check_wanted()

    def _is_sweep_due(self, now: float) -> bool:
        """Return whether expired rows are to be deleted now: once in a while."""
        is_due = now >= self._sweep_at
        if is_due:
            self._sweep_at = now + _SWEEP_S
        return is_due


def on_database_thread(
    *, deadlines: float = 1
) -> Callable[
    [Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
]:
    """Turn a blocking method of an SqlStore into a coroutine method with translated errors."""

    def decorate(method: Blocking[S, P, T]) -> Awaited[S, P, T]:
        blocking = translated(method)

        @wraps(method)
        async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            work = partial(blocking, self, *args, **kwargs)
            return await self._executor.run(work, deadlines=deadlines)

        return call

    return decorate
