"""Whether a table is wanted open, paused or closing, and why: what its state in Redis alone could lose."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "table_0002"
down_revision = "table_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tables", sa.Column("mode", sa.String(16), nullable=False, server_default="open"))
    op.add_column("tables", sa.Column("mode_reason", sa.Text, nullable=False, server_default=""))
    op.add_column("tables", sa.Column("mode_number", sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    raise NotImplementedError("migrations run forward only")
