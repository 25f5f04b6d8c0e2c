"""Alembic environment; uses the connection that ``providers/sql/engine.py`` passes in."""

from alembic import context

from bythebook.providers.sql.schema import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
