"""Database schema for SQLite and PostgreSQL. ``migrations/`` upgrades a database to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.types import TypeEngine

HEAD = "0001"  # the newest migration

metadata = sa.MetaData()


class _Json(TypeDecorator[Any]):
    """JSON; JSONB on PostgreSQL, whose dialect is imported only when used."""

    impl = sa.JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(sa.JSON())
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB())


class _Time(TypeDecorator[datetime]):
    """Moment in UTC; SQLite stores no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return value and (value if value.tzinfo else value.replace(tzinfo=UTC))


_JSON = _Json()
_TIME = _Time()
_UUID = sa.CHAR(36).with_variant(sa.Uuid(as_uuid=False), "postgresql")  # text with dashes


def _table(name: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *columns)


def _partial_index(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    condition = sa.text(where)
    return sa.Index(
        name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition
    )


passages = _table(
    "passages",
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("content_hash", sa.String(64), nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False, server_default="0"),  # reading order
    sa.Index("idx_passages_file", "file", "position"),
)

vectors = _table(
    "vectors",
    sa.Column("embedder", sa.String(200), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
    sa.Column("unit_vectors", sa.LargeBinary, nullable=False),
)

# One row, written once: identifies this book on a Qdrant server shared by several books.
identity = _table(
    "identity",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(32), nullable=False),
)

# One row: the generation being served. Readers check it between two requests.
served = _table(
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
    sa.Column("vectors", sa.String(10), nullable=False, server_default="ready"),
    sa.Column("calibration", sa.Text, nullable=False, server_default=""),
)

# Columns and indexes of the chat contract, except `messages`, which has its own table below. The
# view `conversation_threads` joins both, with the chat contract's columns.
threads = _table(
    "threads",
    sa.Column("thread_id", sa.String(36), primary_key=True),
    sa.Column("created_at", _TIME, nullable=False, server_default=sa.func.now()),
    sa.Column("updated_at", _TIME, nullable=False, server_default=sa.func.now()),
    sa.Column("topic_summary", sa.Text),
    sa.Column("metadata", _JSON, nullable=False, server_default=sa.text("'{}'")),
    sa.Column("owner", sa.String(64)),
    sa.Column("archived_at", _TIME),
    sa.Index("idx_threads_updated", sa.text("updated_at DESC")),
    sa.Index("idx_threads_created", sa.text("created_at DESC")),
    sa.Index("idx_threads_owner", "owner", sa.text("updated_at DESC")),
    _partial_index("idx_threads_live", "updated_at", where="archived_at IS NULL"),
)

messages = _table(
    "thread_messages",
    sa.Column(
        "thread_id",
        sa.String(36),
        sa.ForeignKey("threads.thread_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("role", sa.String(9), nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("timestamp", _TIME, nullable=False),
    sa.Column("confidence", sa.Float),
    sa.Column("citations", _JSON),
    sa.Column("request", sa.String(64)),
    _partial_index(
        "idx_messages_request", "thread_id", "request", where="request IS NOT NULL", unique=True
    ),
)

# Periodic maintenance tasks, each run by one worker, and when they are due again.
chores = _table(
    "chores",
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("due_at", _TIME, nullable=False),
)

# The two tables of the envelope contract, column by column.
query_sessions = _table(
    "query_sessions",
    sa.Column("session_id", _UUID, primary_key=True),
    sa.Column("created_at", _TIME, server_default=sa.func.now()),
    sa.Column("user_ip", sa.String(45)),
    sa.Column("query_count", sa.Integer, server_default="0"),
    sa.Column("last_query_at", _TIME),
    sa.Index("idx_sessions_ip_created", "user_ip", "created_at"),
)

queries = _table(
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
    sa.Index("idx_queries_status", "status", "created_at"),
    sa.Index("idx_queries_session", "session_id"),
    sa.Index("idx_queries_created", "created_at"),
)

# Readers' feedback; no foreign key to ``queries``: the log may be disabled, or late.
feedback = _table(
    "feedback",
    sa.Column("feedback_id", _UUID, primary_key=True),
    sa.Column("query_id", _UUID),
    sa.Column("verdict", sa.String(4), nullable=False),
    sa.Column("reason", sa.String(20)),
    sa.Column("comment", sa.Text),
    sa.Column("created_at", _TIME, nullable=False),
    sa.CheckConstraint("verdict IN ('up', 'down')", name="known_verdict"),
    sa.Index("idx_feedback_created", "created_at"),
    sa.Index("idx_feedback_query", "query_id"),
)

# A dump of the next three tables reveals no key, address or question: only digests, and answers for
# a day.
api_keys = _table(
    "api_keys",
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("origins", _JSON, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("created_at", _TIME, nullable=False),
    sa.Column("revoked_at", _TIME),
    sa.Column("is_author", sa.Boolean, nullable=False, server_default=sa.false()),
)

rate_windows = _table(
    "rate_windows",
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("hits", sa.LargeBinary, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Index("idx_rate_windows_expires", "expires_at"),
)

kept_replies = _table(
    "kept_replies",
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("token", sa.String(32), nullable=False),
    sa.Column("claimed_at", sa.Float, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("headers", _JSON),
    sa.Column("body", sa.LargeBinary),
    sa.Index("idx_kept_replies_claimed", "claimed_at"),
)
