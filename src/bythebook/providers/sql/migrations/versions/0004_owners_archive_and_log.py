"""Add owners and archiving to threads, citations to messages, and the query log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"

_JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_TIME = sa.DateTime(timezone=True)
_UUID = sa.Uuid(as_uuid=False)


def upgrade() -> None:
    # Column by column, never by recreating the table: dropping the old one would delete its
    # messages.
    op.add_column("conversation_threads", sa.Column("owner", sa.String(64)))
    op.add_column("conversation_threads", sa.Column("archived_at", _TIME))
    op.add_column("thread_messages", sa.Column("citations", _JSON))
    newest = sa.text("updated_at DESC")
    op.create_index("idx_threads_owner", "conversation_threads", ["owner", newest])
    live = sa.text("archived_at IS NULL")
    op.create_index(
        "idx_threads_live",
        "conversation_threads",
        ["updated_at"],
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_table(
        "chores",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("due_at", _TIME, nullable=False),
    )
    _create_log()


def _create_log() -> None:
    op.create_table(
        "query_sessions",
        sa.Column("session_id", _UUID, primary_key=True),
        sa.Column("created_at", _TIME, server_default=sa.func.now()),
        sa.Column("user_ip", sa.String(45)),
        sa.Column("query_count", sa.Integer, server_default="0"),
        sa.Column("last_query_at", _TIME),
    )
    op.create_index("idx_sessions_ip_created", "query_sessions", ["user_ip", "created_at"])
    op.create_table(
        "queries",
        sa.Column("query_id", _UUID, primary_key=True),
        sa.Column("session_id", _UUID, sa.ForeignKey("query_sessions.session_id")),
        sa.Column("query_text", sa.Text, nullable=False),
        sa.Column("selected_text_length", sa.Integer),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("refusal_reason", sa.Text),
        sa.Column("chunks_retrieved", sa.Integer),
        sa.Column("top_chunk_score", sa.Float),
        sa.Column("processing_time_ms", sa.Integer),
        sa.Column("created_at", _TIME, server_default=sa.func.now()),
        sa.CheckConstraint("mode IN ('standard_rag', 'selected_text_only')", name="known_mode"),
        sa.CheckConstraint("status IN ('success', 'refused', 'error')", name="known_status"),
    )
    op.create_index("idx_queries_status", "queries", ["status", "created_at"])
    op.create_index("idx_queries_session", "queries", ["session_id"])
    op.create_index("idx_queries_created", "queries", ["created_at"])


def downgrade() -> None:
    for table in ("queries", "query_sessions", "chores"):
        op.drop_table(table)
    for index in ("idx_threads_owner", "idx_threads_live"):
        op.drop_index(index, table_name="conversation_threads")
    op.drop_column("thread_messages", "citations")
    for column in ("owner", "archived_at"):
        op.drop_column("conversation_threads", column)
