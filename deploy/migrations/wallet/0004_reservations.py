"""Reservations: cash held for a buy-in, in accounts of a kind of their own; an index of the hot accounts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0004"
down_revision = "wallet_0003"
branch_labels = None
depends_on = None

# The codes whose debit, or credit, is a player's cash or a stack: as before, and those that reserve and release.
DEBITS = sa.text("code IN (2, 3, 4, 5, 6, 7, 8, 16, 18)")
CREDITS = sa.text("code IN (1, 3, 4, 5, 9, 13, 14, 15, 16, 19)")


def upgrade() -> None:
    op.create_table(
        "reservations",
        sa.Column("reservation", sa.Text, primary_key=True),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("sitting", sa.Text, nullable=False),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("seat", sa.SmallInteger, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("opened_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_ms", sa.BigInteger, nullable=False),
        sa.CheckConstraint("state BETWEEN 1 AND 4", name="reservations_state"),
    )
    op.create_index("reservations_open", "reservations", ["expires_ms"], **_where("state = 1"))
    _allow_reserved_accounts()
    op.create_index("accounts_hot", "accounts", ["account"], **_where("kind IN (5, 6)"))
    op.create_index("accounts_reserved", "accounts", ["owner"], **_where("kind = 7"))
    for side, condition in (("debit", DEBITS), ("credit", CREDITS)):
        op.drop_index(f"transfers_by_{side}", "transfers")
        op.create_index(
            f"transfers_by_{side}",
            "transfers",
            [side, "batch_no", "line"],
            postgresql_where=condition,
            sqlite_where=condition,
        )


def _allow_reserved_accounts() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("accounts_kind", "accounts")
        op.create_check_constraint("accounts_kind", "accounts", "kind BETWEEN 1 AND 7")
        return
    # SQLite cannot change a constraint: the rows move to a table that has the new one.
    op.execute(
        """
        CREATE TABLE accounts_with_reserved (
            account TEXT NOT NULL PRIMARY KEY,
            kind SMALLINT NOT NULL,
            owner TEXT NOT NULL,
            currency TEXT NOT NULL,
            balance BIGINT NOT NULL,
            opened_ms BIGINT NOT NULL,
            CONSTRAINT accounts_kind CHECK (kind BETWEEN 1 AND 7),
            CONSTRAINT accounts_not_negative CHECK (balance >= 0 OR kind = 6)
        )
        """
    )
    op.execute(
        "INSERT INTO accounts_with_reserved SELECT account, kind, owner, currency, balance, opened_ms FROM accounts"
    )
    op.execute("DROP TABLE accounts")
    op.execute("ALTER TABLE accounts_with_reserved RENAME TO accounts")
    op.create_index("accounts_of_player", "accounts", ["owner"], **_where("kind = 1"))


def _where(condition: str) -> dict[str, object]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}
