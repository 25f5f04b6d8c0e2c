"""Create the tables of API keys, rate-limit windows and stored replies."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"

_JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("origins", _JSON, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("revoked_at", _TIME),
    )
    op.create_table(
        "rate_windows",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("hits", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_index("idx_rate_windows_expires", "rate_windows", ["expires_at"])
    op.create_table(
        "kept_replies",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("claimed_at", sa.Float, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("headers", _JSON),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("idx_kept_replies_claimed", "kept_replies", ["claimed_at"])


def downgrade() -> None:
    for table in ("kept_replies", "rate_windows", "api_keys"):
        op.drop_table(table)
