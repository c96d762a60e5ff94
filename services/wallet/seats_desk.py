"""Decisions about sittings: buy-in, top-up, cash-out."""

from __future__ import annotations

from services.runtime.errors import Fault
from services.wallet import chart, limits
from services.wallet import commands as c
from services.wallet.books import Books, Move, SittingRow, TableRow
from services.wallet.cash_desk import require_active, require_player
from services.wallet.chart import AccountKind, TransferCode


def buy_in(books: Books, command: c.BuyIn) -> c.Stack:
    """Opens a sitting's stack.

    Refused with STALE_EPOCH, SITTING_CLOSED (also by a cash-out that came first), SITTING_EXISTS, PLAYER_NOT_FOUND,
    CURRENCY_MISMATCH, PLAYER_FROZEN, LIMIT_EXCEEDED, INSUFFICIENT_FUNDS.
    """
    table = at_epoch(books, command.table, command.epoch)
    require_new_sitting(books, command.sitting)
    player = require_player(books, command.player)
    require_currency(table, command.currency)
    require_active(player)
    cash = books.open_cash(command.player, command.currency)
    stack = chart.stack_account(command.sitting)
    books.open_account(stack, AccountKind.STACK, command.player, command.currency)
    limits.require_buy_in(books, cash, command.amount_minor)
    books.post([Move(TransferCode.BUY_IN, cash, stack, command.amount_minor)])
    limits.count(books, cash, bought_in=command.amount_minor)
    settle_currency(books, table, command.currency)
    open_sitting(
        books, table, sitting=command.sitting, player=command.player, seat=command.seat, currency=command.currency
    )
    return c.Stack(books.balance(stack))


def top_up(books: Books, command: c.TopUp) -> c.Stack:
    """Adds to a stack.

    Refused with STALE_EPOCH, SITTING_NOT_FOUND, SITTING_CLOSED, STACK_LOCKED, PLAYER_FROZEN, LIMIT_EXCEEDED,
    INSUFFICIENT_FUNDS, BALANCE_OVERFLOW.
    """
    at_epoch(books, command.table, command.epoch)
    sitting = require_sitting(books, command.table, command.sitting)
    _require_unlocked(sitting)
    require_active(require_player(books, sitting.player))
    stack = chart.stack_account(sitting.sitting)
    cash = books.open_cash(sitting.player, sitting.currency)
    limits.require_buy_in(books, cash, command.amount_minor)
    books.post([Move(TransferCode.TOP_UP, cash, stack, command.amount_minor)])
    limits.count(books, cash, bought_in=command.amount_minor)
    return c.Stack(books.balance(stack))


def cash_out(books: Books, command: c.CashOut) -> c.CashedOut:
    """Closes a sitting; one that is closed already answers with what it took home then.

    Refused with STALE_EPOCH, SITTING_NOT_FOUND, STACK_LOCKED. An unknown sitting is closed all the same, so that a
    buy-in that arrives after its cash-out opens nothing.
    """
    at_epoch(books, command.table, command.epoch)
    sitting = books.sittings.get(command.sitting)
    if sitting is None:
        _add(books, SittingRow(command.sitting, command.table, "", 0, "", False, 0, 0, books.now_ms))
        raise _not_found(command.sitting)
    if sitting.table_id != command.table or not sitting.player:
        raise _not_found(command.sitting)
    if not sitting.open:
        return c.CashedOut(sitting.cashed_out)
    _require_unlocked(sitting)
    stack = chart.stack_account(sitting.sitting)
    amount = books.balance(stack)
    if amount:
        cash = books.open_cash(sitting.player, sitting.currency)
        books.post([Move(TransferCode.CASH_OUT, stack, cash, amount)])
    sitting.open = False
    sitting.cashed_out = amount
    books.changed_sittings.add(sitting.sitting)
    return c.CashedOut(amount)


def at_epoch(books: Books, table_id: str, epoch: int) -> TableRow:
    """The table's row; refuses an epoch older than the ledger has seen, and takes note of a newer one."""
    table = books.at_table(table_id)
    if epoch < table.epoch:
        raise stale_epoch(table, epoch)
    if epoch > table.epoch:
        table.epoch = epoch
        books.changed_tables.add(table_id)
    return table


def stale_epoch(table: TableRow, epoch: int) -> Fault:
    """The refusal of what was begun under an older epoch than the table is at."""
    return Fault(
        "STALE_EPOCH",
        f"table {table.table_id} is at epoch {table.epoch}, not {epoch}",
        epoch=str(table.epoch),
        table=f"tables/{table.table_id}",
    )


def require_new_sitting(books: Books, name: str) -> None:
    """Refuses the id of a sitting that was there before, with SITTING_CLOSED or SITTING_EXISTS."""
    known = books.sittings.get(name)
    if known is not None and not known.open:
        raise Fault("SITTING_CLOSED", f"sitting {name} is closed", sitting=name)
    if known is not None:
        raise Fault("SITTING_EXISTS", f"sitting {name} is open", sitting=name)


def open_sitting(books: Books, table: TableRow, *, sitting: str, player: str, seat: int, currency: str) -> None:
    """Takes a new, open sitting onto the books."""
    row = SittingRow(
        sitting=sitting,
        table_id=table.table_id,
        player=player,
        seat=seat,
        currency=currency,
        open=True,
        locked_hand=0,
        cashed_out=0,
        opened_ms=books.now_ms,
    )
    _add(books, row)


def require_sitting(books: Books, table_id: str, name: str) -> SittingRow:
    """An open sitting of the table, or SITTING_NOT_FOUND, SITTING_CLOSED."""
    sitting = books.sittings.get(name)
    if sitting is None or sitting.table_id != table_id or not sitting.player:
        raise _not_found(name)
    if not sitting.open:
        raise Fault("SITTING_CLOSED", f"sitting {name} is closed", sitting=name)
    return sitting


def require_currency(table: TableRow, currency: str) -> None:
    """Refuses a currency other than the table's with CURRENCY_MISMATCH."""
    if table.currency not in ("", currency):
        raise Fault(
            "CURRENCY_MISMATCH", f"the table plays in {table.currency}, not {currency}", currency=table.currency
        )


def settle_currency(books: Books, table: TableRow, currency: str) -> None:
    """The first chips at a table settle its currency."""
    if not table.currency:
        table.currency = currency
        books.changed_tables.add(table.table_id)


def _require_unlocked(sitting: SittingRow) -> None:
    if sitting.locked_hand:
        raise Fault(
            "STACK_LOCKED",
            f"hand {sitting.locked_hand} holds the stack of {sitting.sitting}",
            hand=str(sitting.locked_hand),
            sitting=sitting.sitting,
        )


def _not_found(name: str) -> Fault:
    return Fault("SITTING_NOT_FOUND", f"there is no sitting {name} at this table", sitting=name)


def _add(books: Books, row: SittingRow) -> None:
    books.add_sitting(row)
    books.new_sittings[row.sitting] = row
