"""The ledger's tables, as the queries see them; `deploy/migrations/wallet` makes them."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, SmallInteger, Table, Text, TextClause, text

from services.wallet.chart import OWNED_CREDITS, OWNED_DEBITS

metadata: Final = MetaData()

players: Final = Table(
    "players",
    metadata,
    Column("player", Text, primary_key=True),
    Column("display_name", Text, nullable=False),
    Column("display_key", Text, nullable=False, unique=True),
    Column("state", SmallInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

player_changes: Final = Table(
    "player_changes",
    metadata,
    Column("change_no", Integer, primary_key=True, autoincrement=True),
    Column("player", Text, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("changed_by", Text, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

player_limits: Final = Table(
    "player_limits",
    metadata,
    Column("account", Text, primary_key=True),
    Column("player", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("deposit_day_max", BigInteger, nullable=False),
    Column("buy_in_day_max", BigInteger, nullable=False),
)

accounts: Final = Table(
    "accounts",
    metadata,
    Column("account", Text, primary_key=True),
    Column("kind", SmallInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("balance", BigInteger, nullable=False),
    Column("opened_ms", BigInteger, nullable=False),
)

batches: Final = Table(
    "batches",
    metadata,
    Column("batch_no", BigInteger, primary_key=True, autoincrement=False),
    Column("batch_key", Text, nullable=False, unique=True),
    Column("operation", Text, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("hand", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("line_count", Integer, nullable=False),
    Column("committed_ms", BigInteger, nullable=False),
)

transfers: Final = Table(
    "transfers",
    metadata,
    Column("batch_no", BigInteger, primary_key=True, autoincrement=False),
    Column("line", Integer, primary_key=True, autoincrement=False),
    Column("code", SmallInteger, nullable=False),
    Column("debit", Text, nullable=False),
    Column("credit", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("debit_balance", BigInteger, nullable=False),
    Column("credit_balance", BigInteger, nullable=False),
)

table_ledgers: Final = Table(
    "table_ledgers",
    metadata,
    Column("table_id", Text, primary_key=True),
    Column("currency", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("fenced_epoch", BigInteger, nullable=False),
    Column("fenced_hand", BigInteger, nullable=False),
    Column("last_hand", BigInteger, nullable=False),
    Column("open_hand", BigInteger, nullable=False),
    Column("carry_since_hand", BigInteger, nullable=False),
    Column("closed_reason", Text, nullable=False),
)

hands: Final = Table(
    "hands",
    metadata,
    Column("table_id", Text, primary_key=True),
    Column("hand", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("steps", SmallInteger, nullable=False),
    Column("last_round", SmallInteger, nullable=False),
    Column("opened_ms", BigInteger, nullable=False),
    Column("closed_ms", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
)

sittings: Final = Table(
    "sittings",
    metadata,
    Column("sitting", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("player", Text, nullable=False),
    Column("seat", SmallInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("open", Boolean, nullable=False),
    Column("locked_hand", BigInteger, nullable=False),
    Column("cashed_out", BigInteger, nullable=False),
    Column("opened_ms", BigInteger, nullable=False),
)

reservations: Final = Table(
    "reservations",
    metadata,
    Column("reservation", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("sitting", Text, nullable=False),
    Column("player", Text, nullable=False),
    Column("seat", SmallInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("opened_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("closed_ms", BigInteger, nullable=False),
)

seals: Final = Table(
    "seals",
    metadata,
    Column("seal_no", BigInteger, primary_key=True, autoincrement=False),
    Column("first_batch", BigInteger, nullable=False),
    Column("last_batch", BigInteger, nullable=False),
    Column("batch_count", BigInteger, nullable=False),
    Column("transfer_count", BigInteger, nullable=False),
    Column("previous_head", Text, nullable=False),
    Column("head", Text, nullable=False),
    Column("sealed_ms", BigInteger, nullable=False),
)

audited_balances: Final = Table(
    "audited_balances",
    metadata,
    Column("account", Text, primary_key=True),
    Column("balance", BigInteger, nullable=False),
)

ledger_state: Final = Table(
    "ledger_state",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("closed_reason", Text, nullable=False),
    Column("audited_batch", BigInteger, nullable=False),
    Column("audited_ms", BigInteger, nullable=False),
)


def owned_side(is_credit: bool) -> TextClause:
    """The condition of the index of credits, or of debits: that side may be a player's cash or a stack."""
    codes = OWNED_CREDITS if is_credit else OWNED_DEBITS
    return text(f"transfers.code IN ({', '.join(str(code) for code in codes)})")
