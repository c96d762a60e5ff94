"""Why one table takes no new hand, while the rest of the house goes on; empty where it does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0007"
down_revision = "wallet_0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("table_ledgers", sa.Column("closed_reason", sa.Text, nullable=False, server_default=""))
