"""Store an identity of the book, which distinguishes its collections on a shared Qdrant server."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    identity = op.create_table(
        "identity",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(32), nullable=False),
    )
    op.bulk_insert(identity, [{"id": 1, "name": uuid.uuid4().hex}])


def downgrade() -> None:
    op.drop_table("identity")
