"""Rename the thread table and add the chat contract's view ``conversation_threads``."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
# The last 50 messages in order, with the chat contract's fields; only answers have confidence.
_NEWEST = (
    "m.thread_id = t.thread_id AND m.seq > "
    "(SELECT max(n.seq) - 50 FROM thread_messages n WHERE n.thread_id = t.thread_id)"
)
_POSTGRESQL = f"""
CREATE VIEW conversation_threads AS SELECT
    CASE WHEN t.thread_id ~* '{_UUID}' THEN t.thread_id::uuid END AS thread_id,
    COALESCE((
        SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
            'role', m.role,
            'content', m.content,
            'timestamp', to_char(m.timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            'confidence', m.confidence
        )) ORDER BY m.seq) FROM thread_messages m WHERE {_NEWEST}
    ), '[]'::jsonb) AS messages,
    t.created_at, t.updated_at, t.topic_summary, t.metadata
FROM threads t
"""  # noqa: S608 - every part of it stands here
_SQLITE = f"""
CREATE VIEW conversation_threads AS SELECT
    t.thread_id,
    (
        SELECT json_group_array(json(shown)) FROM (
            SELECT json_patch('{{}}', json_object(
                'role', m.role,
                'content', m.content,
                'timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', m.timestamp),
                'confidence', m.confidence
            )) AS shown FROM thread_messages m WHERE {_NEWEST} ORDER BY m.seq
        )
    ) AS messages,
    t.created_at, t.updated_at, t.topic_summary, t.metadata
FROM threads t
"""  # noqa: S608


def upgrade() -> None:
    op.rename_table("conversation_threads", "threads")
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.get_bind().exec_driver_sql(_SQLITE if sqlite else _POSTGRESQL)
    if not sqlite:
        for column in ("created_at", "updated_at"):
            op.alter_column("threads", column, server_default=sa.func.now())


def downgrade() -> None:
    op.execute("DROP VIEW conversation_threads")
    op.rename_table("threads", "conversation_threads")
    if op.get_bind().dialect.name != "sqlite":
        for column in ("created_at", "updated_at"):
            op.alter_column("conversation_threads", column, server_default=None)
