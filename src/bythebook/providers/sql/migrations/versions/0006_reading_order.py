"""Store the reading order of passages."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("passages", sa.Column("seq", sa.Integer, nullable=False, server_default="0"))
    # So far, rows were stored in the order of insertion, which was the reading order.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("UPDATE passages SET seq = rowid")
    else:
        op.execute(
            "UPDATE passages SET seq = placed.seq FROM "
            "(SELECT id, row_number() OVER (ORDER BY ctid) AS seq FROM passages) AS placed "
            "WHERE passages.id = placed.id"
        )


def downgrade() -> None:
    op.drop_column("passages", "seq")
