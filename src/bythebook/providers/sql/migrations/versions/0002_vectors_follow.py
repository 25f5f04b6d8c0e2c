"""Store the vector state of a generation, which may be served without vectors, and calibration."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("served") as served:
        served.add_column(
            sa.Column("vectors", sa.String(10), nullable=False, server_default="ready")
        )
        served.add_column(sa.Column("calibration", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("served") as served:
        served.drop_column("calibration")
        served.drop_column("vectors")
