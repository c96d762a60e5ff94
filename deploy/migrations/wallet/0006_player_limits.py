"""What a player may deposit, and take to tables, in a day: by the cash account that it concerns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0006"
down_revision = "wallet_0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "player_limits",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("deposit_day_max", sa.BigInteger, nullable=False),
        sa.Column("buy_in_day_max", sa.BigInteger, nullable=False),
        sa.CheckConstraint("deposit_day_max >= 0 AND buy_in_day_max >= 0", name="player_limits_not_negative"),
    )
    op.create_index("limits_of_player", "player_limits", ["player"])
