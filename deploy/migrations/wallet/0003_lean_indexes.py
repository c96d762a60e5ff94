"""Statements go by player and stack: index only those sides of a transfer. Leave room for rows that change in place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0003"
down_revision = "wallet_0002"
branch_labels = None
depends_on = None

# The codes whose debit, or credit, is a player's cash or a stack.
DEBITS = sa.text("code IN (2, 3, 4, 5, 6, 7, 8, 16)")
CREDITS = sa.text("code IN (1, 3, 4, 5, 9, 13, 14, 15, 16)")


def upgrade() -> None:
    for side, condition in (("debit", DEBITS), ("credit", CREDITS)):
        op.drop_index(f"transfers_by_{side}", "transfers")
        op.create_index(
            f"transfers_by_{side}",
            "transfers",
            [side, "batch_no", "line"],
            postgresql_where=condition,
            sqlite_where=condition,
        )
    if op.get_bind().dialect.name == "postgresql":
        for table in ("accounts", "table_ledgers", "hands", "sittings"):
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02)")
