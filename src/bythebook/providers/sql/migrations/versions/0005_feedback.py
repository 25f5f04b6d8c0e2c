"""Create the table of readers' feedback on answers."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_UUID = sa.Uuid(as_uuid=False)


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("feedback_id", _UUID, primary_key=True),
        sa.Column("query_id", _UUID),
        sa.Column("verdict", sa.String(4), nullable=False),
        sa.Column("reason", sa.String(20)),
        sa.Column("comment", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("verdict IN ('up', 'down')", name="known_verdict"),
    )
    op.create_index("idx_feedback_created", "feedback", ["created_at"])
    op.create_index("idx_feedback_query", "feedback", ["query_id"])


def downgrade() -> None:
    op.drop_table("feedback")
