"""Finished hands, who played them, their records, and who read sealed cards."""

import sqlalchemy as sa
from alembic import op

revision = "history_0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite gives out row ids only for a column declared INTEGER.
SEQUENCE = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "hands",
        sa.Column("seq", SEQUENCE, primary_key=True, autoincrement=True),
        sa.Column("hand_id", sa.BigInteger, nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("hand", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("rulebook", sa.String(64), nullable=False),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("start_ms", sa.BigInteger, nullable=False),
        sa.Column("end_ms", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.SmallInteger, nullable=False),
        sa.Column("pot_minor", sa.BigInteger, nullable=False),
        sa.Column("rake_minor", sa.BigInteger, nullable=False),
        sa.Column("carry_in_minor", sa.BigInteger, nullable=False),
        sa.Column("carry_out_minor", sa.BigInteger, nullable=False),
        sa.Column("incomplete", sa.Boolean, nullable=False),
        sa.Column("written_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("hand_id", name="hands_hand_id"),
        sa.UniqueConstraint("table_id", "hand", name="hands_table_hand"),
    )
    op.create_index("hands_by_end", "hands", ["end_ms", "hand_id"])
    op.create_index("hands_by_table", "hands", ["table_id", "end_ms", "hand_id"])
    op.create_index("hands_by_rulebook", "hands", ["rulebook", "end_ms", "hand_id"])
    op.create_table(
        "hand_records",
        sa.Column("seq", SEQUENCE, sa.ForeignKey("hands.seq"), primary_key=True, autoincrement=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    # The primary key is the order of a player's list, and the row holds what the list shows.
    op.create_table(
        "hand_players",
        sa.Column("player", sa.String(128), primary_key=True),
        sa.Column("end_ms", sa.BigInteger, primary_key=True),
        sa.Column("hand_id", sa.BigInteger, primary_key=True),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("hand", sa.BigInteger, nullable=False),
        sa.Column("rulebook", sa.String(64), nullable=False),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("outcome", sa.SmallInteger, nullable=False),
        sa.Column("pot_minor", sa.BigInteger, nullable=False),
        sa.Column("net_minor", sa.BigInteger, nullable=False),
        sa.Column("won_minor", sa.BigInteger, nullable=False),
        sa.Column("voluntary", sa.Boolean, nullable=False),
        sa.Column("showdown", sa.Boolean, nullable=False),
        sa.Column("incomplete", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_reads",
        sa.Column("seq", SEQUENCE, primary_key=True, autoincrement=True),
        sa.Column("reader", sa.String(128), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("hand", sa.BigInteger, nullable=False),
        sa.Column("purpose", sa.String(64), nullable=False),
        sa.Column("read_ms", sa.BigInteger, nullable=False),
    )
