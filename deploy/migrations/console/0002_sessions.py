"""Sessions by their id, so that signing out ends one wherever its cookie is."""

import sqlalchemy as sa
from alembic import op

revision = "console_0002"
down_revision = "console_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_sessions",
        sa.Column("session", sa.String(32), primary_key=True),
        sa.Column("person", sa.String(63), nullable=False, index=True),
        sa.Column("begun_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False, index=True),
    )


def downgrade() -> None:
    op.drop_table("console_sessions")
