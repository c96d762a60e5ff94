"""What a player may deposit, and take to tables, in one day (UTC), where the house has set a limit.

The day's sums are read from the entries under the lock of the player's cash account, which whatever counts against a
limit must take; so two processes cannot both use what is left. What a reservation gave back is given back to the day
that it was taken from: one of yesterday that is released today leaves today's use as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from services.runtime.errors import Fault
from services.wallet import chart, row_sets
from services.wallet import commands as c
from services.wallet.books import Books, LimitRow
from services.wallet.chart import OWNED_CREDITS, OWNED_DEBITS, TransferCode
from services.wallet.reports import DAY_MS
from services.wallet.row_sets import Statement
from services.wallet.schema import player_limits

# Nobody's clock is off by so much.
_CLOCKS_DIFFER_MS: Final = DAY_MS

# The newest entries are read, back to the first that is surely of another day, and not all that a player ever moved.
_OF_DAY: Final = """
    coalesce((SELECT CAST(sum(t.amount) AS BIGINT) FROM transfers t JOIN batches b ON b.batch_no = t.batch_no {join}
        WHERE t.{side} = l.account AND t.code IN ({indexed}) AND t.code IN ({counted})
        AND t.batch_no > coalesce((
            SELECT p.batch_no FROM transfers p JOIN batches q ON q.batch_no = p.batch_no
            WHERE p.{side} = l.account AND p.code IN ({indexed}) AND q.committed_ms < {mark}
            ORDER BY p.batch_no DESC LIMIT 1), 0)
        {on_day}), 0)"""
_ON_DAY: Final = "AND b.committed_ms >= {mark}"
# A release comes from the account of its reservation, which was opened when the cash was taken; that day counts.
_OF_TODAYS_RESERVATIONS: Final = f"""
    JOIN reservations r ON r.reservation = substr(t.debit, {len(chart.reserved_account("")) + 1})
        AND r.opened_ms >= {{mark}}"""
_COUNTED: Final = (
    ("credit", OWNED_CREDITS, (TransferCode.DEPOSIT,), "", _ON_DAY),
    ("debit", OWNED_DEBITS, (TransferCode.BUY_IN, TransferCode.TOP_UP, TransferCode.RESERVE), "", _ON_DAY),
    ("credit", OWNED_CREDITS, (TransferCode.RELEASE,), _OF_TODAYS_RESERVATIONS, ""),
)


def question(conn: Connection, cash_accounts: Collection[str], now_ms: int) -> Statement | None:
    """The limits on these accounts, each with what the day has used of it; to be asked once they are locked."""
    if not cash_accounts:
        return None
    mark = "%s" if row_sets.is_postgresql(conn) else "?"
    deposited, taken, released = (
        _OF_DAY.format(
            side=side,
            indexed=_listed(indexed),
            counted=_listed(counted),
            join=join.format(mark=mark),
            on_day=on_day.format(mark=mark),
            mark=mark,
        )
        for side, indexed, counted, join, on_day in _COUNTED
    )
    asked = row_sets.among(
        conn,
        "SELECT l.account, l.deposit_day_max, l.buy_in_day_max,"  # noqa: S608 - made of codes
        f" {deposited} AS deposited, {taken} - {released} AS bought_in FROM player_limits l",
        "l.account",
        cash_accounts,
    )
    if asked is None:
        return None
    day = _day_of(now_ms)
    before = day - _CLOCKS_DIFFER_MS
    # As the marks stand in the text: a release asks for its reservation's day first.
    return Statement(asked.text, (before, day, before, day, day, before, *asked.values))


def add(books: Books, rows: Collection[row_sets.Row]) -> None:
    """Takes the answer to `question` onto the books."""
    for account, deposit_day_max, buy_in_day_max, deposited, bought_in in rows:
        books.limits[account] = LimitRow(deposit_day_max, buy_in_day_max, deposited, bought_in)


def require_deposit(books: Books, account: str, amount: int) -> None:
    """Refuses a deposit past the day's limit with LIMIT_EXCEEDED."""
    limit = books.limits.get(account)
    if limit is not None:
        _require(account, limit.deposit_day_max, limit.deposited, amount)


def require_buy_in(books: Books, account: str, amount: int) -> None:
    """Refuses a buy-in, top-up or reservation past the day's limit with LIMIT_EXCEEDED."""
    limit = books.limits.get(account)
    if limit is not None:
        _require(account, limit.buy_in_day_max, limit.bought_in, amount)


def count(books: Books, account: str, *, deposited: int = 0, bought_in: int = 0) -> None:
    """Counts what was moved, for what the same commit decides later."""
    limit = books.limits.get(account)
    if limit is not None:
        limit.deposited += deposited
        limit.bought_in += bought_in


def give_back(books: Books, account: str, amount: int, taken_ms: int) -> None:
    """Counts what a reservation gives back, if it was taken today."""
    if taken_ms >= _day_of(books.now_ms):
        count(books, account, bought_in=-amount)


def of_player(conn: Connection, player: str) -> tuple[c.PlayerLimits, ...]:
    """The limits that are set for a player, by currency."""
    found = conn.execute(
        select(player_limits.c.currency, player_limits.c.deposit_day_max, player_limits.c.buy_in_day_max)
        .where(player_limits.c.player == player)
        .order_by(player_limits.c.currency)
    )
    return tuple(c.PlayerLimits(currency, deposit, buy_in) for currency, deposit, buy_in in found)


def set_limits(conn: Connection, command: c.SetPlayerLimits) -> None:
    """Replaces a player's limits in one currency; 0 and 0 are none."""
    account = chart.cash_account(command.player, command.currency)
    conn.execute(delete(player_limits).where(player_limits.c.account == account))
    values = (command.deposit_day_max_minor, command.buy_in_day_max_minor)
    if any(values):
        conn.execute(insert(player_limits).values((account, command.player, command.currency, *values)))


def _require(account: str, most: int, used: int, amount: int) -> None:
    if most and used + amount > most:
        raise Fault(
            "LIMIT_EXCEEDED",
            f"{account} has used {used} of the day's {most}, and {amount} is more than what is left",
            account=account,
            limit_minor=str(most),
            left_minor=str(max(0, most - used)),
        )


def _day_of(now_ms: int) -> int:
    return now_ms - now_ms % DAY_MS


def _listed(codes: Collection[int]) -> str:
    return ", ".join(str(int(code)) for code in codes)
