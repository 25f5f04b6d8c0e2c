"""Database schema for SQLite and PostgreSQL. ``migrations/`` upgrades a database to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    CHAR,
    JSON,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.types import TypeEngine

HEAD = "0010"  # the newest migration

metadata = MetaData()


class _Json(TypeDecorator[Any]):
    """JSON; JSONB on PostgreSQL, whose dialect is imported only when used."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(JSON())
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB())


_JSON = _Json()
_UUID = CHAR(36).with_variant(Uuid(as_uuid=False), "postgresql")  # text with dashes

passages = Table(
    "passages",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("file", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("record", _JSON, nullable=False),
    Column("seq", Integer, nullable=False, server_default="0"),  # reading order
    Index("idx_passages_file", "file", "position"),
)

vectors = Table(
    "vectors",
    metadata,
    Column("embedder", String(200), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    Column("unit_vectors", LargeBinary, nullable=False),
)

# One row, written once: identifies this book on a Qdrant server shared by several books.
identity = Table(
    "identity",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(32), nullable=False),
)

# One row: the generation being served. Readers check it between two requests.
served = Table(
    "served",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("generation", String(64), nullable=False),
    Column("embedder", String(200), nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("passages", Integer, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("vocabulary", LargeBinary, nullable=False),
    Column("origin", Text, nullable=False),
    Column("published_at", DateTime(timezone=True), nullable=False),
    Column("vectors", String(10), nullable=False, server_default="ready"),
    Column("calibration", Text, nullable=False, server_default=""),
)

# Columns and indexes of the chat contract, except `messages`, which has its own table below. The
# view `conversation_threads` joins both, with the chat contract's columns.
threads = Table(
    "threads",
    metadata,
    Column("thread_id", String(36), primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("topic_summary", Text),
    Column("metadata", _JSON, nullable=False, server_default=text("'{}'")),
    Column("owner", String(64)),
    Column("archived_at", DateTime(timezone=True)),
    Index("idx_threads_updated", text("updated_at DESC")),
    Index("idx_threads_created", text("created_at DESC")),
    Index("idx_threads_owner", "owner", text("updated_at DESC")),
    Index(
        "idx_threads_live",
        "updated_at",
        sqlite_where=text("archived_at IS NULL"),
        postgresql_where=text("archived_at IS NULL"),
    ),
)

messages = Table(
    "thread_messages",
    metadata,
    Column(
        "thread_id",
        String(36),
        ForeignKey("threads.thread_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("role", String(9), nullable=False),
    Column("content", Text, nullable=False),
    Column("timestamp", DateTime(timezone=True), nullable=False),
    Column("confidence", Float),
    Column("citations", _JSON),
    Column("request", String(64)),
    Index(
        "idx_messages_request",
        "thread_id",
        "request",
        unique=True,
        sqlite_where=text("request IS NOT NULL"),
        postgresql_where=text("request IS NOT NULL"),
    ),
)

# Periodic maintenance tasks, each run by one worker, and when they are due again.
chores = Table(
    "chores",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("due_at", DateTime(timezone=True), nullable=False),
)

# The two tables of the envelope contract, column by column.
query_sessions = Table(
    "query_sessions",
    metadata,
    Column("session_id", _UUID, primary_key=True),
    Column("created_at", DateTime(timezone=True), server_default=func.now()),
    Column("user_ip", String(45)),
    Column("query_count", Integer, server_default="0"),
    Column("last_query_at", DateTime(timezone=True)),
    Index("idx_sessions_ip_created", "user_ip", "created_at"),
)

queries = Table(
    "queries",
    metadata,
    Column("query_id", _UUID, primary_key=True),
    Column("session_id", _UUID, ForeignKey("query_sessions.session_id")),
    Column("query_text", Text, nullable=False),
    Column("selected_text_length", Integer),
    Column("mode", String(20), nullable=False),
    Column("status", String(20), nullable=False),
    Column("refusal_reason", Text),
    Column("chunks_retrieved", Integer),
    Column("top_chunk_score", Float),
    Column("processing_time_ms", Integer),
    Column("created_at", DateTime(timezone=True), server_default=func.now()),
    CheckConstraint("mode IN ('standard_rag', 'selected_text_only')", name="known_mode"),
    CheckConstraint("status IN ('success', 'refused', 'error')", name="known_status"),
    Index("idx_queries_status", "status", "created_at"),
    Index("idx_queries_session", "session_id"),
    Index("idx_queries_created", "created_at"),
)

# Readers' feedback; no foreign key to ``queries``: the log may be disabled, or late.
feedback = Table(
    "feedback",
    metadata,
    Column("feedback_id", _UUID, primary_key=True),
    Column("query_id", _UUID),
    Column("verdict", String(4), nullable=False),
    Column("reason", String(20)),
    Column("comment", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    CheckConstraint("verdict IN ('up', 'down')", name="known_verdict"),
    Index("idx_feedback_created", "created_at"),
    Index("idx_feedback_query", "query_id"),
)

# A dump of the next three tables reveals no key, address or question: only digests, and answers for
# a day.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("label", Text, nullable=False),
    Column("origins", _JSON, nullable=False, server_default=text("'[]'")),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("revoked_at", DateTime(timezone=True)),
)

rate_windows = Table(
    "rate_windows",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("hits", LargeBinary, nullable=False),
    Column("expires_at", Float, nullable=False),
    Index("idx_rate_windows_expires", "expires_at"),
)

kept_replies = Table(
    "kept_replies",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("token", String(32), nullable=False),
    Column("claimed_at", Float, nullable=False),
    Column("status", Integer),
    Column("headers", _JSON),
    Column("body", LargeBinary),
    Index("idx_kept_replies_claimed", "claimed_at"),
)
