"""A database at any revision of the schema, with rows in every table of that revision."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from bythebook.providers.sql import migrations as folder
from bythebook.providers.sql.engine import migrations

Rows = dict[str, list[dict[str, Any]]]

_SINGLE = ("served", "identity")  # tables of one row
_ROWS = 30  # in each table
# Where not all will do.
_NAMED = {"mode": "standard_rag", "status": "success", "role": "user", "verdict": "up"}


def revisions() -> list[str]:
    """Return all revisions, oldest first."""
    script = ScriptDirectory(str(Path(str(folder.__file__)).parent))
    return [revision.revision for revision in reversed(list(script.walk_revisions()))]


def go(engine: sa.Engine, revision: str) -> None:
    """Migrate up or down to a revision."""
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        here = MigrationContext.configure(connection).get_current_revision() or ""
        down = revision == "base" or revision < here
        (command.downgrade if down else command.upgrade)(migrations(connection), revision)


def fill(engine: sa.Engine) -> Rows:
    """Insert rows into every table of the present revision and return them."""
    with engine.begin() as connection:
        for table in _tables(connection):
            rows = [
                {column.name: _value(column, number) for column in table.columns}
                for number in range(1 if table.name in _SINGLE else _ROWS)
            ]
            connection.execute(sa.insert(table), rows)
    return content(engine)


def content(engine: sa.Engine) -> Rows:
    with engine.connect() as connection:
        return {
            table.name: [dict(row) for row in connection.execute(_in_order(table)).mappings().all()]
            for table in _tables(connection)
        }


def lost(before: Rows, now: Rows) -> int:
    """Count rows that are missing or changed. New columns do not count."""
    return sum(
        not any(_holds(found, row) for found in now.get(table, ())[number : number + 1])
        for table, rows in before.items()
        for number, row in enumerate(rows)
    )


def _holds(found: dict[str, Any], row: dict[str, Any]) -> bool:
    return all(
        name in found and _plain(found[name]) == _plain(value) for name, value in row.items()
    )


def _plain(value: Any) -> Any:
    """Normalise the spelling of UUIDs."""
    return value.replace("-", "") if isinstance(value, str) else value


def _tables(connection: sa.Connection) -> list[sa.Table]:
    """Reflect the tables, parents before children."""
    found = sa.MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def _in_order(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).order_by(*table.primary_key.columns)


def _value(column: sa.Column[Any], number: int) -> Any:  # noqa: PLR0911 - one for each type
    """Return a deterministic value for a column and number, so that children find their parents."""
    match column.type:
        case sa.Boolean():
            return number % 2 == 1
        case sa.Integer():
            return number
        case sa.Float() | sa.Numeric():
            return number + 0.5
        case sa.DateTime():
            return datetime(2026, 1, 2, 3, 4, number, tzinfo=UTC)
        case sa.JSON():
            return {"number": number}
        case sa.LargeBinary():
            return f"{column.name} {number}".encode()
        case sa.Uuid():
            return uuid.UUID(int=number)
        case sa.String() as text if text.length is not None and column.name.endswith("_id"):
            return f"{number:032}"[: text.length]
        case _:
            return _NAMED.get(column.name, f"{column.name[:6]} {number}")
