"""Create the tables of the catalog and of conversation threads."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

_JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "passages",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("record", _JSON, nullable=False),
    )
    op.create_index("idx_passages_file", "passages", ["file", "position"])
    op.create_table(
        "vectors",
        sa.Column("embedder", sa.String(200), primary_key=True),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("unit_vectors", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "served",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("generation", sa.String(64), nullable=False),
        sa.Column("embedder", sa.String(200), nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("passages", sa.Integer, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("vocabulary", sa.LargeBinary, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("published_at", _TIME, nullable=False),
    )
    _create_threads()


def _create_threads() -> None:
    op.create_table(
        "conversation_threads",
        sa.Column("thread_id", sa.String(36), primary_key=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.Column("topic_summary", sa.Text),
        sa.Column("metadata", _JSON, nullable=False, server_default=sa.text("'{}'")),
    )
    newest = sa.text("updated_at DESC")
    op.create_index("idx_threads_updated", "conversation_threads", [newest])
    op.create_index("idx_threads_created", "conversation_threads", [sa.text("created_at DESC")])
    op.create_table(
        "thread_messages",
        sa.Column(
            "thread_id",
            sa.String(36),
            sa.ForeignKey("conversation_threads.thread_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("role", sa.String(9), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("timestamp", _TIME, nullable=False),
        sa.Column("confidence", sa.Float),
    )


def downgrade() -> None:
    for table in ("thread_messages", "conversation_threads", "served", "vectors", "passages"):
        op.drop_table(table)
