"""The rake's transfers by number, so that a report need not read all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0002"
down_revision = "wallet_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    condition = sa.text("code = 10")
    op.create_index("transfers_of_rake", "transfers", ["batch_no"], postgresql_where=condition, sqlite_where=condition)
