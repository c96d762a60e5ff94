"""Revenue and activity, from the entries alone: rake by table and day, chips in play, cash that lies idle.

A table has one rulebook for life, which the registry of tables knows; whoever wants the rake by rulebook adds up its
tables' rows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, and_, case, func, select
from sqlalchemy import cast as sql_cast

from services.wallet.chart import AccountKind, TransferCode
from services.wallet.commands import Balance
from services.wallet.schema import accounts, batches, owned_side, sittings, table_ledgers, transfers

DAY_MS: Final = 86_400_000
RAKE_ROWS_MAX: Final = 10_000


class RakeRow(Struct, frozen=True, gc=False):
    """The rake of one table on one day (`YYYY-MM-DD`, UTC), and how many hands paid any."""

    table: str
    day: str
    currency: str
    rake_minor: int
    hands: int


class RakeReport(Struct, frozen=True):
    """Rows by day, table and currency; `truncated` where there are more than `RAKE_ROWS_MAX`."""

    rows: tuple[RakeRow, ...]
    truncated: bool


class ChipsInPlay(Struct, frozen=True, gc=False):
    """The chips at one table."""

    table: str
    currency: str
    sittings: int
    stacks_minor: int
    pot_minor: int
    carry_minor: int


class DormantBalance(Struct, frozen=True, gc=False):
    """Cash of a player, and when it last moved."""

    player: str
    currency: str
    amount_minor: int
    last_entry_ms: int


class DormantBalances(Struct, frozen=True):
    """The largest dormant balances, and the sum of all of them by currency."""

    balances: tuple[DormantBalance, ...]
    totals: tuple[Balance, ...]


def rake(conn: Connection, since_ms: int, before_ms: int, table: str = "") -> RakeReport:
    """The rake committed from one time up to and without another."""
    day = batches.c.committed_ms - batches.c.committed_ms % DAY_MS
    query = (
        select(
            day.label("day"),
            batches.c.table_id,
            transfers.c.currency,
            sql_cast(func.sum(transfers.c.amount), BigInteger),
            func.count(),
        )
        .join(batches, batches.c.batch_no == transfers.c.batch_no)
        .where(
            transfers.c.code == int(TransferCode.RAKE),
            batches.c.committed_ms >= since_ms,
            batches.c.committed_ms < before_ms,
        )
        .group_by(day, batches.c.table_id, transfers.c.currency)
        .order_by(day, batches.c.table_id, transfers.c.currency)
        .limit(RAKE_ROWS_MAX + 1)
    )
    if table:
        query = query.where(batches.c.table_id == table)
    rows = [
        RakeRow(table_id, datetime.fromtimestamp(start / 1000, UTC).date().isoformat(), currency, amount, count)
        for start, table_id, currency, amount, count in conn.execute(query)
    ]
    return RakeReport(tuple(rows[:RAKE_ROWS_MAX]), len(rows) > RAKE_ROWS_MAX)


def chips_in_play(conn: Connection, after: str, limit: int) -> tuple[ChipsInPlay, ...]:
    """Tables, by id after the one given, that have an open sitting, a pot or a carry."""
    stacks = (
        select(
            sittings.c.table_id,
            func.count().label("seated"),
            sql_cast(func.sum(accounts.c.balance), BigInteger).label("stacks"),
        )
        .join(accounts, accounts.c.account == "stack/" + sittings.c.sitting)
        .where(sittings.c.open.is_(True))
        .group_by(sittings.c.table_id)
        .subquery()
    )
    of_table = (
        select(
            accounts.c.owner,
            sql_cast(
                func.sum(case((accounts.c.kind == int(AccountKind.POT), accounts.c.balance), else_=0)), BigInteger
            ).label("pot"),
            sql_cast(
                func.sum(case((accounts.c.kind == int(AccountKind.CARRY), accounts.c.balance), else_=0)), BigInteger
            ).label("carry"),
        )
        .where(accounts.c.kind.in_((int(AccountKind.POT), int(AccountKind.CARRY))))
        .group_by(accounts.c.owner)
        .subquery()
    )
    tables = table_ledgers.c
    seated, stacks_minor = func.coalesce(stacks.c.seated, 0), func.coalesce(stacks.c.stacks, 0)
    pot, carry = func.coalesce(of_table.c.pot, 0), func.coalesce(of_table.c.carry, 0)
    rows = conn.execute(
        select(tables.table_id, tables.currency, seated, stacks_minor, pot, carry)
        .outerjoin(stacks, stacks.c.table_id == tables.table_id)
        .outerjoin(of_table, of_table.c.owner == tables.table_id)
        .where(tables.table_id > after, (seated > 0) | (pot > 0) | (carry > 0))
        .order_by(tables.table_id)
        .limit(limit)
    )
    return tuple(ChipsInPlay(*row) for row in rows)


def dormant(conn: Connection, idle_since_ms: int, limit: int) -> DormantBalances:
    """Players' cash above zero without an entry since a time."""
    debited, credited = (
        select(transfers.c.batch_no)
        .join(batches, batches.c.batch_no == transfers.c.batch_no)
        .where(
            side == accounts.c.account,
            owned_side(side is transfers.c.credit),
            batches.c.committed_ms >= idle_since_ms,
        )
        .correlate(accounts)
        .exists()
        for side in (transfers.c.debit, transfers.c.credit)
    )
    idle = and_(accounts.c.kind == int(AccountKind.PLAYER), accounts.c.balance > 0, ~debited, ~credited)
    totals = conn.execute(
        select(accounts.c.currency, sql_cast(func.sum(accounts.c.balance), BigInteger))
        .where(idle)
        .group_by(accounts.c.currency)
        .order_by(accounts.c.currency)
    )
    largest = conn.execute(
        select(accounts.c.account, accounts.c.owner, accounts.c.currency, accounts.c.balance)
        .where(idle)
        .order_by(accounts.c.balance.desc(), accounts.c.account)
        .limit(limit)
    ).all()
    return DormantBalances(
        tuple(
            DormantBalance(owner, currency, balance, _last_entry_ms(conn, account))
            for account, owner, currency, balance in largest
        ),
        tuple(Balance(currency, amount) for currency, amount in totals),
    )


def _last_entry_ms(conn: Connection, account: str) -> int:
    last = 0
    for side in (transfers.c.debit, transfers.c.credit):
        found = conn.scalar(
            select(batches.c.committed_ms)
            .join(transfers, transfers.c.batch_no == batches.c.batch_no)
            .where(side == account, owned_side(side is transfers.c.credit))
            .order_by(transfers.c.batch_no.desc())
            .limit(1)
        )
        last = max(last, found or 0)
    return last
