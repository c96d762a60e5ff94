"""The checker's own books: what each account held under the last seal that was found sound."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0005"
down_revision = "wallet_0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audited_balances",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("balance", sa.BigInteger, nullable=False),
    )
    # Checking begins with the first batch, whatever an earlier version took note of.
    op.execute("UPDATE ledger_state SET audited_batch = 0")
