"""The schema goes up, down and up again, with data in it, on either database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from bythebook.providers.sql import migrations, open_database
from bythebook.providers.tables import HEAD, metadata
from tests.databases import POSTGRES, address

_MOMENT = "2026-01-02 03:04:05+00:00"
# What a home made by the first revision holds. A later one may add to it and take nothing away.
_ROWS = [
    "INSERT INTO passages VALUES ('p', 'a.md', 0, 'h', '{}')",
    "INSERT INTO vectors VALUES ('e', 'k', 'v', 'u')",
    "INSERT INTO served (id, generation, embedder, dimension, passages, fingerprint, vocabulary, "
    f"origin, published_at) VALUES (1, 'g', 'e', 4, 1, 'f', 'v', '', '{_MOMENT}')",
    *(
        "INSERT INTO conversation_threads (thread_id, created_at, updated_at) "
        f"VALUES ('t{n}', '{_MOMENT}', '{_MOMENT}')"
        for n in range(3)
    ),
    *(
        f"INSERT INTO thread_messages (thread_id, seq, role, content, timestamp) "
        f"VALUES ('t{n % 3}', {n}, 'user', 'hello', '{_MOMENT}')"
        for n in range(30)
    ),
]
_TABLES = ("passages", "vectors", "served", "conversation_threads", "thread_messages")


def _revisions() -> list[str]:
    script = ScriptDirectory(str(Path(migrations.__globals__["__file__"]).parent / "migrations"))
    return [revision.revision for revision in reversed(list(script.walk_revisions()))]


@pytest.fixture(params=["sqlite", POSTGRES])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    engine = open_database(address(request.param, tmp_path, request), tmp_path)
    yield engine
    engine.dispose()


def _go(engine: sa.Engine, revision: str) -> None:
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        here = MigrationContext.configure(connection).get_current_revision() or ""
        down = revision == "base" or revision < here
        (command.downgrade if down else command.upgrade)(migrations(connection), revision)


def _counts(engine: sa.Engine) -> list[int]:
    with engine.connect() as connection:
        return [
            connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in _TABLES
        ]


def test_every_revision_goes_up_down_and_up_again_without_loss(engine: sa.Engine) -> None:
    _go(engine, "base")
    _go(engine, "0001")
    with engine.begin() as connection:
        for row in _ROWS:
            connection.execute(sa.text(row))
    expected = [1, 1, 1, 3, 30]
    for revision in _revisions()[1:]:
        for target in (revision, "0001", revision):
            _go(engine, target)
            assert _counts(engine) == expected, f"at {target}, for {revision}"


def test_the_migrations_end_at_the_schema_that_the_code_uses(engine: sa.Engine) -> None:
    assert _revisions()[-1] == HEAD
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    # Alembic cannot read back a descending index of SQLite; PostgreSQL's say whether it is there.
    unsure = engine.dialect.name == "sqlite"
    assert not [found for found in differences if not (unsure and "index" in str(found[0]))]


def test_workers_that_start_together_migrate_once(
    request: pytest.FixtureRequest, engine: sa.Engine, tmp_path: Path
) -> None:
    del engine  # only its parameter: each worker opens its own
    kind = request.node.callspec.params["engine"]
    url, failed = address(kind, tmp_path / "new", request), []

    def start() -> None:
        try:
            open_database(url, tmp_path / "new").dispose()
        except Exception as error:
            failed.append(error)

    workers = [threading.Thread(target=start) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed
