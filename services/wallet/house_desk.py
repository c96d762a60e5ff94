"""Decisions about the house's own accounts: the sweep of hot sub-accounts into their heads."""

from __future__ import annotations

from services.wallet import chart
from services.wallet import commands as c
from services.wallet.books import Books, Move
from services.wallet.chart import AccountKind, TransferCode


def sweep_house(books: Books, command: c.SweepHouse) -> c.Swept:
    """Moves what the sub-accounts of rake and cashier hold to their heads. Never refused.

    The cashier's sub-accounts are mostly below zero: what they issued, the head has then issued, as far as its own
    bound goes. What does not fit stays where it is.
    """
    rakes = [chart.rake_account(command.currency, shard) for shard in range(chart.SHARDS)]
    rake_head = chart.rake_account(command.currency, chart.HEAD)
    taken_in = [Move(TransferCode.SWEEP, rake, rake_head, books.balance(rake)) for rake in rakes if books.balance(rake)]
    moved = _cashier_moves(books, command.currency)
    if taken_in:
        books.open_account(rake_head, AccountKind.RAKE, "house", command.currency)
    if moved:
        cashier_head = chart.cashier_account(command.currency, chart.HEAD)
        books.open_account(cashier_head, AccountKind.CASHIER, "house", command.currency)
    books.post([*taken_in, *moved])
    return c.Swept(sum(move.amount_minor for move in taken_in), sum(move.amount_minor for move in moved))


def _cashier_moves(books: Books, currency: str) -> list[Move]:
    """Those that took chips back come first, and make room for what the others issued."""
    head = chart.cashier_account(currency, chart.HEAD)
    room = chart.ISSUED_BY_HEAD_MAX_MINOR + books.balance(head)
    moves = []
    cashiers = (chart.cashier_account(currency, shard) for shard in range(chart.SHARDS))
    for cashier in sorted(cashiers, key=books.balance, reverse=True):
        balance = books.balance(cashier)
        if balance > 0:
            moves.append(Move(TransferCode.SWEEP, cashier, head, balance))
            room += balance
        elif balance < 0 and room > 0:
            issued = min(-balance, room)
            moves.append(Move(TransferCode.SWEEP, head, cashier, issued))
            room -= issued
    return moves
