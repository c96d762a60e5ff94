"""The history's tables. `deploy/migrations/history` makes them; a test holds the two together."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

METADATA: Final = sa.MetaData()
_SEQUENCE: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")

HANDS: Final = sa.Table(
    "hands",
    METADATA,
    # Rows and records lie in the order of writing, so that a new hand touches the last page and not a random one.
    sa.Column("seq", _SEQUENCE, primary_key=True, autoincrement=True),
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
    sa.Index("hands_by_end", "end_ms", "hand_id"),
    sa.Index("hands_by_table", "table_id", "end_ms", "hand_id"),
    sa.Index("hands_by_rulebook", "rulebook", "end_ms", "hand_id"),
)

HAND_RECORDS: Final = sa.Table(
    "hand_records",
    METADATA,
    sa.Column("seq", _SEQUENCE, sa.ForeignKey("hands.seq"), primary_key=True, autoincrement=False),
    sa.Column("record", sa.LargeBinary, nullable=False),
)

HAND_PLAYERS: Final = sa.Table(
    "hand_players",
    METADATA,
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

AUDIT_READS: Final = sa.Table(
    "audit_reads",
    METADATA,
    sa.Column("seq", _SEQUENCE, primary_key=True, autoincrement=True),
    sa.Column("reader", sa.String(128), nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("hand", sa.BigInteger, nullable=False),
    sa.Column("purpose", sa.String(64), nullable=False),
    sa.Column("read_ms", sa.BigInteger, nullable=False),
)

# Up to which number every hand of a table has a row, or is past its retention.
RECONCILED_TABLES: Final = sa.Table(
    "reconciled_tables",
    METADATA,
    sa.Column("table_id", sa.String(64), primary_key=True),
    sa.Column("hand", sa.BigInteger, nullable=False),
)
