"""Create the tables of ``schema.py`` and the chat contract's view ``conversation_threads``.

Later revisions find their columns in a new database, and add them to an existing one.
"""

import uuid

from alembic import op

from bythebook.providers.sql import schema

revision = "0001"
down_revision = None

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
    connection = op.get_bind()
    schema.metadata.create_all(connection)
    is_sqlite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql(_SQLITE if is_sqlite else _POSTGRESQL)
    op.bulk_insert(schema.identity, [{"id": 1, "name": uuid.uuid4().hex}])


def downgrade() -> None:
    op.execute("DROP VIEW conversation_threads")
    schema.metadata.drop_all(op.get_bind())
