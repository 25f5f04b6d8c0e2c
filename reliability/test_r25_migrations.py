"""Migrations up, down and up again from every revision, with data, lose nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from tests.support.databases import Postgres

from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.schema import HEAD, metadata
from reliability.rows import Rows
from reliability.schema import content, fill, go, lost, revisions

pytestmark = pytest.mark.real

_WORKERS = 4


def test_every_revision_with_data(rows: Rows, tmp_path: Path, postgres: Postgres) -> None:
    row = rows.add(
        "R25",
        "Migrate a database that holds data",
        requirement="0 lost rows, 0 differences",
    )
    moves = rows = gone = differences = failures = 0
    addresses: list[str | None] = [None, postgres.new_database()]
    for address in addresses:
        for first in revisions():
            engine = open_database(address, tmp_path / first)
            go(engine, "base")
            go(engine, first)
            before = fill(engine)
            rows += sum(map(len, before.values()))
            for target in (*revisions(), first, "head"):
                if target == "head" or target >= first:
                    go(engine, target)
                    moves += 1
                    gone += lost(before, content(engine))
            differences += _differences(engine)
            engine.dispose()
    for address in (None, postgres.new_database()):
        failures += _started_together(address, tmp_path / "together")
    row.record(
        f"{moves} migrations up and down from each of {len(revisions())} revisions, on SQLite and "
        f"PostgreSQL, {rows} rows in all tables; {2 * _WORKERS} workers that start together",
        f"{gone} rows lost, {differences} differences from the schema in use, {failures} failures",
        passed=not (gone or differences or failures) and revisions()[-1] == HEAD,
    )


def _differences(engine: sa.Engine) -> int:
    """Return differences between the migrated schema and the schema in the code."""
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)
    # Alembic cannot read back a descending index of SQLite; PostgreSQL's say whether it is there.
    unsure = engine.dialect.name == "sqlite"
    return len([each for each in found if not (unsure and "index" in str(each[0]))])


def _started_together(address: str | None, home: Path) -> int:
    """Start workers at once; one migrates, the others wait. Return how many failed."""
    failed: list[Exception] = []

    def start() -> None:
        try:
            open_database(address, home).dispose()
        except Exception as error:
            failed.append(error)

    workers = [threading.Thread(target=start) for _ in range(_WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(failed)
