"""The operators' audit log, and actions that wait for a second person."""

import sqlalchemy as sa
from alembic import op

revision = "console_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_audit",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("person", sa.String(63), nullable=False),
        sa.Column("second", sa.String(63), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("target", sa.String(120), nullable=False),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(500), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("link", sa.String(64), nullable=False, unique=True),
    )
    op.create_table(
        "console_pending",
        sa.Column("pending", sa.String(32), primary_key=True),
        sa.Column("person", sa.String(63), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("target", sa.String(120), nullable=False),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("sealed_token", sa.LargeBinary, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("console_pending")
    op.drop_table("console_audit")
