"""Questions to the ledger: profiles, balances, statements, tables, totals. Each runs on one snapshot."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, and_, case, cast, func, or_, select

from services.runtime.errors import Fault
from services.wallet import chart, limits, reservation_reads
from services.wallet import commands as c
from services.wallet.books import LINES_MAX
from services.wallet.chart import AccountKind, HandOutcome, PlayerState, TransferCode
from services.wallet.schema import accounts, batches, hands, owned_side, players, sittings, table_ledgers, transfers

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 500
# A sum of int64s is told in the databases' own wider or exact arithmetic, in two halves that cannot overflow.
_HALF: Final = 2**32


class EntryQuery(Struct, frozen=True, gc=False):
    """Which lines of a player's statement: below an entry id, of a table, of a hand, before and from a time."""

    player: str
    page_size: int = PAGE_DEFAULT
    before_entry: int = 0
    table: str = ""
    hand: int = 0
    before_ms: int = 0
    from_ms: int = 0


def player(conn: Connection, name: str) -> c.Player:
    """A profile, or PLAYER_NOT_FOUND."""
    row = conn.execute(select(players).where(players.c.player == name)).one_or_none()
    if row is None:
        raise Fault("PLAYER_NOT_FOUND", f"there is no player {name}", player=name)
    return c.Player(row.player, row.display_name, PlayerState(row.state), row.created_ms, limits.of_player(conn, name))


def balances(conn: Connection, name: str) -> c.Balances:
    """A player's chips by currency: cash, and on tables."""
    player(conn, name)
    cash = conn.execute(
        select(accounts.c.currency, accounts.c.balance)
        .where(accounts.c.kind == AccountKind.PLAYER, accounts.c.owner == name)
        .order_by(accounts.c.currency)
    )
    on_tables: dict[str, int] = {}
    stacks = conn.execute(
        select(sittings.c.currency, accounts.c.balance)
        .join(accounts, accounts.c.account == "stack/" + sittings.c.sitting)
        .where(sittings.c.player == name, sittings.c.open.is_(True))
        .order_by(sittings.c.currency)
    )
    for currency, balance in stacks:
        on_tables[currency] = on_tables.get(currency, 0) + balance
    return c.Balances(
        tuple(c.Balance(currency, balance) for currency, balance in cash),
        tuple(c.Balance(currency, balance) for currency, balance in on_tables.items()),
        reservation_reads.held(conn, name),
    )


def balances_at(conn: Connection, name: str, at_ms: int) -> c.Balances:
    """A player's chips by currency as the entries committed before a time had left them."""
    player(conn, name)
    cash: dict[str, int] = {}
    on_tables: dict[str, int] = {}
    owned = conn.execute(
        select(accounts.c.account, accounts.c.kind, accounts.c.currency)
        .where(accounts.c.kind.in_((AccountKind.PLAYER, AccountKind.STACK)), accounts.c.owner == name)
        .order_by(accounts.c.currency)
    ).all()
    for account, kind, currency in owned:
        amounts = cash if kind == AccountKind.PLAYER else on_tables
        amounts[currency] = amounts.get(currency, 0) + _balance_at(conn, account, at_ms)
    return c.Balances(
        tuple(c.Balance(currency, amount) for currency, amount in cash.items()),
        tuple(c.Balance(currency, amount) for currency, amount in on_tables.items() if amount),
    )


def table_ledger(conn: Connection, table: str) -> c.TableLedger:
    """What the ledger knows of a table."""
    row = conn.execute(select(table_ledgers).where(table_ledgers.c.table_id == table)).one_or_none()
    if row is None:
        return c.TableLedger(0, 0, None, 0, (), 0)
    last = conn.execute(
        select(hands.c.outcome, hands.c.steps).where(hands.c.table_id == table, hands.c.hand == row.last_hand)
    ).one_or_none()
    stacks = conn.execute(
        select(sittings.c.sitting, sittings.c.player, accounts.c.balance)
        .join(accounts, accounts.c.account == "stack/" + sittings.c.sitting)
        .where(sittings.c.table_id == table, sittings.c.open.is_(True))
        .order_by(sittings.c.seat, sittings.c.sitting)
    )
    carry = conn.execute(
        select(accounts.c.balance).where(accounts.c.account == chart.carry_account(table))
    ).scalar_one_or_none()
    return c.TableLedger(
        epoch=row.epoch,
        last_hand=row.last_hand,
        last_hand_outcome=None if last is None else HandOutcome(last.outcome),
        last_hand_steps=0 if last is None else last.steps,
        stacks=tuple(c.SittingStack(sitting, owner, balance, True) for sitting, owner, balance in stacks),
        carry_minor=carry or 0,
    )


def entries(conn: Connection, query: EntryQuery) -> c.EntryPage:
    """A page of a player's statement: the legs of transfers on their cash and their stacks, newest first.

    A line's id is `(batch number * 4096 + line - 1) * 2`, one more for the credited side.
    """
    player(conn, query.player)
    size = min(query.page_size or PAGE_DEFAULT, PAGE_MAX)
    owned = [
        *conn.scalars(
            select(accounts.c.account).where(accounts.c.kind == AccountKind.PLAYER, accounts.c.owner == query.player)
        ),
        *("stack/" + name for name in conn.scalars(_sittings_of(query))),
    ]
    lines: list[c.Entry] = []
    for start in range(0, len(owned), _ACCOUNTS_AT_ONCE):
        some = owned[start : start + _ACCOUNTS_AT_ONCE]
        for side in (0, 1):
            lines.extend(_legs(conn, query, some, side, size + 1))
        lines = sorted(lines, key=lambda line: line.entry_id, reverse=True)[: size + 1]
    more = len(lines) > size
    page = tuple(lines[:size])
    return c.EntryPage(page, page[-1].entry_id if more else 0)


def summary(conn: Connection) -> c.LedgerSummary:
    """Totals by kind and currency, exact beyond int64."""
    low = func.sum(accounts.c.balance % _HALF)
    high = func.sum((accounts.c.balance - accounts.c.balance % _HALF) // _HALF)
    rows = conn.execute(
        select(accounts.c.kind, accounts.c.currency, cast(high, BigInteger), cast(low, BigInteger), func.count())
        .group_by(accounts.c.kind, accounts.c.currency)
        .order_by(accounts.c.kind, accounts.c.currency)
    )
    totals = [
        c.KindTotal(AccountKind(kind), currency, int(upper) * _HALF + int(lower), count)
        for kind, currency, upper, lower, count in rows
    ]
    imbalance: dict[str, int] = {}
    for total in totals:
        imbalance[total.currency] = imbalance.get(total.currency, 0) + total.amount_minor
    open_hands = conn.scalar(select(func.count()).where(table_ledgers.c.open_hand > 0)) or 0
    return c.LedgerSummary(
        tuple(totals),
        tuple(c.Balance(currency, amount) for currency, amount in sorted(imbalance.items())),
        conn.scalar(select(func.count()).select_from(batches)) or 0,
        open_hands,
    )


_ACCOUNTS_AT_ONCE: Final = 1_000


def _balance_at(conn: Connection, account: str, at_ms: int) -> int:
    last: tuple[int, int, int] = (0, 0, 0)
    for side, balance in (
        (transfers.c.debit, transfers.c.debit_balance),
        (transfers.c.credit, transfers.c.credit_balance),
    ):
        found = conn.execute(
            select(transfers.c.batch_no, transfers.c.line, balance)
            .join(batches, batches.c.batch_no == transfers.c.batch_no)
            .where(side == account, owned_side(side is transfers.c.credit), batches.c.committed_ms < at_ms)
            .order_by(transfers.c.batch_no.desc(), transfers.c.line.desc())
            .limit(1)
        ).one_or_none()
        if found is not None:
            last = max(last, tuple(found))
    return last[2]


def _sittings_of(query: EntryQuery) -> Any:
    found = select(sittings.c.sitting).where(sittings.c.player == query.player)
    return found.where(sittings.c.table_id == query.table) if query.table else found


def _legs(conn: Connection, query: EntryQuery, owned: list[str], side: int, limit: int) -> list[c.Entry]:
    account = transfers.c.credit if side else transfers.c.debit
    balance = transfers.c.credit_balance if side else transfers.c.debit_balance
    conditions: list[Any] = [account.in_(owned), owned_side(side == 1)]
    if query.before_entry:
        at, half = divmod(query.before_entry, 2)
        # The other side of the same transfer comes first when it has the higher id.
        at += 1 if side < half else 0
        number, line = divmod(at, LINES_MAX)
        conditions.append(
            or_(transfers.c.batch_no < number, and_(transfers.c.batch_no == number, transfers.c.line - 1 < line))
        )
    if query.table:
        conditions.append(batches.c.table_id == query.table)
    if query.hand:
        conditions.append(batches.c.hand == query.hand)
    if query.before_ms:
        conditions.append(batches.c.committed_ms < query.before_ms)
    if query.from_ms:
        conditions.append(batches.c.committed_ms >= query.from_ms)
    rows = conn.execute(
        select(
            transfers.c.batch_no,
            transfers.c.line,
            batches.c.batch_key,
            transfers.c.code,
            transfers.c.currency,
            case((account == transfers.c.credit, transfers.c.amount), else_=-transfers.c.amount),
            balance,
            batches.c.table_id,
            batches.c.hand,
            batches.c.committed_ms,
            account,
        )
        .join(batches, batches.c.batch_no == transfers.c.batch_no)
        .where(*conditions)
        .order_by(transfers.c.batch_no.desc(), transfers.c.line.desc())
        .limit(limit)
    )
    return [
        c.Entry(
            (number * LINES_MAX + line - 1) * 2 + side,
            key.partition(" ")[2],
            TransferCode(code),
            currency,
            amount,
            after,
            table,
            hand,
            committed_ms,
            name,
        )
        for number, line, key, code, currency, amount, after, table, hand, committed_ms, name in rows
    ]
