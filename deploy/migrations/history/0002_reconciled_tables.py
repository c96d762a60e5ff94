"""Up to which hand of each table every number is settled: hands whose log was lost are found without a search."""

import sqlalchemy as sa
from alembic import op

revision = "history_0002"
down_revision = "history_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reconciled_tables",
        sa.Column("table_id", sa.String(64), primary_key=True),
        sa.Column("hand", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("reconciled_tables")
