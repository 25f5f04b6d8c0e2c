"""Store the UUIDs of the query log and of feedback with dashes in SQLite, as in PostgreSQL."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_COLUMNS = {
    "query_sessions": ("session_id",),
    "queries": ("query_id", "session_id"),
    "feedback": ("feedback_id", "query_id"),
}
_LENGTHS = {32: "CHAR(32)", 36: "CHAR(36)"}


def upgrade() -> None:
    _respell(
        36,
        "substr({0},1,8)||'-'||substr({0},9,4)||'-'||substr({0},13,4)||'-'"
        "||substr({0},17,4)||'-'||substr({0},21)",
    )


def downgrade() -> None:
    _respell(32, "replace({0}, '-', '')")


def _respell(length: int, spelled: str) -> None:
    """Copy each table into one with columns of the new width: SQLite cannot change a column's type.

    The old tables are renamed first, and referencing tables are dropped first, so that no foreign
    key is ever violated.
    """
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    find = "SELECT type, sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL"
    made = {table: connection.exec_driver_sql(find, (table,)).all() for table in _COLUMNS}
    for table in _COLUMNS:
        op.rename_table(table, f"old_{table}")
    for table, columns in _COLUMNS.items():
        [create] = [sql for kind, sql in made[table] if kind == "table"]
        connection.exec_driver_sql(create.replace(_LENGTHS[68 - length], _LENGTHS[length]))
        names = [column["name"] for column in sa.inspect(connection).get_columns(table)]
        shown = [spelled.format(name) if name in columns else name for name in names]
        connection.exec_driver_sql(
            f"INSERT INTO {table} ({', '.join(names)}) "  # noqa: S608 - names of our own
            f"SELECT {', '.join(shown)} FROM old_{table}"
        )
    for table in reversed(_COLUMNS):
        op.drop_table(f"old_{table}")
        for kind, sql in made[table]:
            if kind == "index":
                connection.exec_driver_sql(sql)
