"""Tables, hands and lots of the deck service."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deck_tables",
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("open_hand", sa.BigInteger, nullable=False),
        sa.Column("last_hand", sa.BigInteger, nullable=False),
        sa.Column("deck_number", sa.BigInteger, nullable=False),
        sa.Column("chain", sa.LargeBinary, nullable=False),
        sa.Column("next_commitment", sa.LargeBinary, nullable=False),
        sa.Column("next_seed", sa.LargeBinary, nullable=False),
        sa.Column("fence_epoch", sa.BigInteger, nullable=False),
        sa.Column("fence_voided", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "deck_hands",
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("hand", sa.BigInteger, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("deck_number", sa.BigInteger, nullable=False),
        sa.Column("stage", sa.SmallInteger, nullable=False),
        sa.Column("commitment", sa.LargeBinary, nullable=False),
        sa.Column("previous_chain", sa.LargeBinary, nullable=False),
        sa.Column("chain", sa.LargeBinary, nullable=False),
        sa.Column("opened_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_ms", sa.BigInteger, nullable=False),
        sa.Column("sealed_key", sa.LargeBinary, nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary, nullable=False),
        sa.Column("sealed_play", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("table_name", "deck_number", name="deck_hands_deck_number"),
    )
    op.create_table(
        "deck_lots",
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("step_id", sa.Text, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("seat", sa.SmallInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("deck_lots")
    op.drop_table("deck_hands")
    op.drop_table("deck_tables")
