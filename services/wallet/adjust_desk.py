"""The decision about a correction by hand: two people give a player cash, or take it."""

from __future__ import annotations

from services.wallet import chart
from services.wallet import commands as c
from services.wallet.books import Books, Move
from services.wallet.cash_desk import require_player
from services.wallet.chart import AccountKind, TransferCode


def adjust_balance(books: Books, command: c.AdjustBalance) -> c.Balance:
    """Adjustments to player, or back. Refused with PLAYER_NOT_FOUND, INSUFFICIENT_FUNDS, BALANCE_OVERFLOW.

    A frozen player's cash is corrected too: a freeze refuses new risk, and a correction is none.
    """
    require_player(books, command.player)
    cash = books.open_cash(command.player, command.currency)
    adjustments = chart.cashier_account(command.currency, chart.ADJUSTMENTS)
    books.open_account(adjustments, AccountKind.CASHIER, "house", command.currency)
    debit, credit = (adjustments, cash) if command.amount_minor > 0 else (cash, adjustments)
    books.post([Move(TransferCode.ADJUSTMENT, debit, credit, abs(command.amount_minor))])
    return c.Balance(command.currency, books.balance(cash))
