"""Where a day begins among the batches, so that a day's limit is read from that day's entries."""

from __future__ import annotations

from alembic import op

revision = "wallet_0009"
down_revision = "wallet_0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("batches_by_time", "batches", ["committed_ms"])
