"""Add the role of an author to API keys. Existing keys do not get it: they may be readers' keys."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    columns = sa.inspect(op.get_bind()).get_columns("api_keys")
    if not any(column["name"] == "is_author" for column in columns):
        role = sa.Column("is_author", sa.Boolean, nullable=False, server_default=sa.false())
        op.add_column("api_keys", role)


def downgrade() -> None:
    """Keep the column: it has a default, and the earlier revision ignores it."""
