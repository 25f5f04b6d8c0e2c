"""Store the request of a message, so that a repeated request is stored once."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("thread_messages", sa.Column("request", sa.String(64)))
    some = sa.text("request IS NOT NULL")
    op.create_index(
        "idx_messages_request",
        "thread_messages",
        ["thread_id", "request"],
        unique=True,
        sqlite_where=some,
        postgresql_where=some,
    )


def downgrade() -> None:
    op.drop_index("idx_messages_request", "thread_messages")
    op.drop_column("thread_messages", "request")
