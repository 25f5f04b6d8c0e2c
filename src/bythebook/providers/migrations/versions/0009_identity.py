"""Give the book an identity, by which its collections on a shared Qdrant server are told apart."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    identity = op.create_table(
        "identity",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(32), nullable=False),
    )
    op.bulk_insert(identity, [{"id": 1, "name": uuid.uuid4().hex}])


def downgrade() -> None:
    op.drop_table("identity")
