"""The ledger: players, accounts, batches, transfers, tables, hands, sittings, seals.

Batches, transfers and seals are append-only; triggers refuse every UPDATE and DELETE (and TRUNCATE on PostgreSQL).
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "wallet_0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("batches", "transfers", "seals", "player_changes")


def upgrade() -> None:
    op.create_table(
        "players",
        sa.Column("player", sa.Text, primary_key=True),
        sa.Column("display_name", sa.Text, nullable=False),
        sa.Column("display_key", sa.Text, nullable=False, unique=True),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.CheckConstraint("state IN (1, 2)", name="players_state"),
    )
    op.create_table(
        "player_changes",
        sa.Column("change_no", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("changed_by", sa.Text, nullable=False),
        sa.Column("changed_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "accounts",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("balance", sa.BigInteger, nullable=False),
        sa.Column("opened_ms", sa.BigInteger, nullable=False),
        sa.CheckConstraint("kind BETWEEN 1 AND 6", name="accounts_kind"),
        sa.CheckConstraint("balance >= 0 OR kind = 6", name="accounts_not_negative"),
    )
    op.create_index("accounts_of_player", "accounts", ["owner"], **_where("kind = 1"))
    op.create_table(
        "batches",
        sa.Column("batch_no", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("batch_key", sa.Text, nullable=False, unique=True),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("hand", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("line_count", sa.Integer, nullable=False),
        sa.Column("committed_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("batches_of_hand", "batches", ["table_id", "hand"], **_where("hand > 0"))
    op.create_table(
        "transfers",
        sa.Column("batch_no", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("line", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("code", sa.SmallInteger, nullable=False),
        sa.Column("debit", sa.Text, nullable=False),
        sa.Column("credit", sa.Text, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("debit_balance", sa.BigInteger, nullable=False),
        sa.Column("credit_balance", sa.BigInteger, nullable=False),
        sa.CheckConstraint("amount > 0", name="transfers_positive"),
        sa.CheckConstraint("debit <> credit", name="transfers_two_accounts"),
    )
    op.create_index("transfers_by_debit", "transfers", ["debit", "batch_no", "line"])
    op.create_index("transfers_by_credit", "transfers", ["credit", "batch_no", "line"])
    op.create_table(
        "table_ledgers",
        sa.Column("table_id", sa.Text, primary_key=True),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("fenced_epoch", sa.BigInteger, nullable=False),
        sa.Column("fenced_hand", sa.BigInteger, nullable=False),
        sa.Column("last_hand", sa.BigInteger, nullable=False),
        sa.Column("open_hand", sa.BigInteger, nullable=False),
        sa.Column("carry_since_hand", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "hands",
        sa.Column("table_id", sa.Text, primary_key=True),
        sa.Column("hand", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.SmallInteger, nullable=False),
        sa.Column("steps", sa.SmallInteger, nullable=False),
        sa.Column("last_round", sa.SmallInteger, nullable=False),
        sa.Column("opened_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_ms", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.CheckConstraint("outcome IN (1, 2, 3)", name="hands_outcome"),
    )
    op.create_table(
        "sittings",
        sa.Column("sitting", sa.Text, primary_key=True),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("player", sa.Text, nullable=False),
        sa.Column("seat", sa.SmallInteger, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("open", sa.Boolean, nullable=False),
        sa.Column("locked_hand", sa.BigInteger, nullable=False),
        sa.Column("cashed_out", sa.BigInteger, nullable=False),
        sa.Column("opened_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("sittings_open_at_table", "sittings", ["table_id"], **_where("open"))
    op.create_index("sittings_of_player", "sittings", ["player"])
    op.create_table(
        "seals",
        sa.Column("seal_no", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("first_batch", sa.BigInteger, nullable=False),
        sa.Column("last_batch", sa.BigInteger, nullable=False),
        sa.Column("batch_count", sa.BigInteger, nullable=False),
        sa.Column("transfer_count", sa.BigInteger, nullable=False),
        sa.Column("previous_head", sa.Text, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
        sa.Column("sealed_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "ledger_state",
        sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("closed_reason", sa.Text, nullable=False),
        sa.Column("audited_batch", sa.BigInteger, nullable=False),
        sa.Column("audited_ms", sa.BigInteger, nullable=False),
        sa.CheckConstraint("id = 1", name="ledger_state_one_row"),
    )
    op.execute("INSERT INTO ledger_state (id, closed_reason, audited_batch, audited_ms) VALUES (1, '', 0, 0)")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE batch_numbers AS bigint")
        _refuse_changes_on_postgresql()
    else:
        _refuse_changes_on_sqlite()


def _where(condition: str) -> dict[str, object]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def _refuse_changes_on_postgresql() -> None:
    op.execute(
        """
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$
        """
    )
    for table in APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )


def _refuse_changes_on_sqlite() -> None:
    for table in APPEND_ONLY:
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
