"""Decisions that undo or end: void, fence, refunded carry. They read the ledger's own entries, so they take the
connection too, and everything decided before them in the same commit must have been written.
"""

from __future__ import annotations

from sqlalchemy import Connection

from services.runtime.errors import Fault
from services.wallet import chart, store
from services.wallet import commands as c
from services.wallet.books import Books, BooksBrokenError, HandRow, Move, SittingRow, TableRow
from services.wallet.chart import HandOutcome, TransferCode
from services.wallet.hand_desk import close_hand, hand_closed, stack_of
from services.wallet.seats_desk import at_epoch


def void_hand(conn: Connection, books: Books, command: c.VoidHand) -> c.Voided:
    """Undoes a hand; one that was never opened is closed for good, one that is void already stays so.

    Refused with STALE_EPOCH, HAND_CLOSED (outcome `awarded`).
    """
    table = at_epoch(books, command.table, command.epoch)
    hand = books.hands.get((command.table, command.hand))
    if hand is not None and hand.outcome is HandOutcome.AWARDED:
        raise hand_closed(hand.hand, hand.outcome)
    carry = chart.carry_account(command.table)
    if hand is None:
        _leave_tombstone(books, table, command)
        return c.Voided((), books.balance(carry))
    if hand.outcome is HandOutcome.VOID:
        return c.Voided((), books.balance(carry))
    stacks = _undo(conn, books, table, hand, command.reason)
    return c.Voided(stacks, books.balance(carry))


def fence_table(conn: Connection, books: Books, command: c.FenceTable) -> c.Fenced:
    """Shuts older epochs out and voids a hand opened under one; the same epoch's fence again changes nothing.

    An awarded hand stays awarded. Refused with STALE_EPOCH.
    """
    table = at_epoch(books, command.table, command.epoch)
    if table.fenced_epoch == command.epoch:
        return c.Fenced(table_ledger(books, table), table.fenced_hand)
    table.fenced_epoch = command.epoch
    table.fenced_hand = 0
    books.changed_tables.add(table.table_id)
    hand = books.hands.get((table.table_id, table.open_hand))
    if hand is not None and hand.epoch < command.epoch:
        table.fenced_hand = hand.hand
        _undo(conn, books, table, hand, command.reason or f"fenced by epoch {command.epoch}")
    return c.Fenced(table_ledger(books, table), table.fenced_hand)


def refund_carry(conn: Connection, books: Books, command: c.RefundCarry) -> c.CarryRefunded:
    """Gives the carry back in proportion to what was paid into the hands it passed through (RULES 5).

    Those hands are all since the carry was last empty after a hand. Shares are rounded down; what is left goes one
    unit each to the lowest seats, the earlier sitting first. Refused with STALE_EPOCH, OTHER_HAND_OPEN.
    """
    table = at_epoch(books, command.table, command.epoch)
    if table.open_hand:
        raise Fault(
            "OTHER_HAND_OPEN", f"hand {table.open_hand} is open at table {table.table_id}", hand=str(table.open_hand)
        )
    carry = chart.carry_account(command.table)
    amount = books.balance(carry)
    if not amount:
        return c.CarryRefunded(0)
    paid = store.contributions(conn, table.table_id, table.carry_since_hand, table.last_hand)
    names = {account.removeprefix("stack/"): amount for account, amount in paid.items() if amount > 0}
    store.load_sittings(conn, books, names)
    payers = sorted((_payer(books, name) for name in names), key=lambda row: (row.seat, row.opened_ms, row.sitting))
    if not payers:
        raise BooksBrokenError(f"the carry of {command.table} holds {amount} and nobody paid it")
    shares = proportional_shares(amount, [names[row.sitting] for row in payers])
    store.load_accounts(conn, books, (chart.cash_account(row.player, row.currency) for row in payers))
    books.post(
        [
            Move(TransferCode.CARRY_REFUND, carry, books.open_cash(row.player, row.currency), share)
            for row, share in zip(payers, shares, strict=True)
            if share
        ]
    )
    table.carry_since_hand = 0
    books.changed_tables.add(table.table_id)
    return c.CarryRefunded(amount)


def proportional_shares(amount: int, weights: list[int]) -> list[int]:
    """Splits an amount by weights, rounded down; the rest goes one unit each from the first on."""
    whole = sum(weights)
    shares = [amount * weight // whole for weight in weights]
    for at in range(amount - sum(shares)):
        shares[at] += 1
    return shares


def table_ledger(books: Books, table: TableRow) -> c.TableLedger:
    """What the books know of a table whose open sittings are at hand."""
    last = books.hands.get((table.table_id, table.last_hand))
    seated = [row for row in books.sittings_at.get(table.table_id, ()) if row.open]
    return c.TableLedger(
        epoch=table.epoch,
        last_hand=table.last_hand,
        last_hand_outcome=None if last is None else last.outcome,
        last_hand_steps=0 if last is None else last.steps,
        stacks=tuple(stack_of(books, row) for row in sorted(seated, key=lambda row: (row.seat, row.sitting))),
        carry_minor=books.balance(chart.carry_account(table.table_id)),
    )


def _undo(conn: Connection, books: Books, table: TableRow, hand: HandRow, reason: str) -> tuple[c.SittingStack, ...]:
    pot = chart.pot_account(hand.table_id, hand.hand)
    paid = store.contributions(conn, hand.table_id, hand.hand, hand.hand)
    carried = store.carried_in(conn, hand.table_id, hand.hand)
    if sum(paid.values()) + carried != books.balance(pot):
        raise BooksBrokenError(f"{pot} holds {books.balance(pot)}, its entries say {sum(paid.values()) + carried}")
    # A hand opened before returns were held to what was paid may have given too much back: that comes first, as a bet
    # into the pot. The stack has it, since the hand has locked it.
    moves = [Move(TransferCode.BET, account, pot, -amount) for account, amount in sorted(paid.items()) if amount < 0]
    moves += [
        Move(TransferCode.VOID, pot, _refunded_account(conn, books, account.removeprefix("stack/")), amount)
        for account, amount in sorted(paid.items())
        if amount > 0
    ]
    if carried:
        moves.append(Move(TransferCode.VOID, pot, chart.carry_account(hand.table_id), carried))
    books.post(moves)
    return close_hand(books, table, hand, HandOutcome.VOID, reason=reason)


def _refunded_account(conn: Connection, books: Books, name: str) -> str:
    """Where a refund to a sitting goes: its stack, or its player's cash once it is closed."""
    store.load_sittings(conn, books, [name])
    sitting = _payer(books, name)
    if sitting.open:
        return chart.stack_account(name)
    store.load_accounts(conn, books, [chart.cash_account(sitting.player, sitting.currency)])
    return books.open_cash(sitting.player, sitting.currency)


def _payer(books: Books, name: str) -> SittingRow:
    sitting = books.sittings.get(name)
    if sitting is None:
        raise BooksBrokenError(f"stack/{name} paid into a pot and has no sitting")
    return sitting


def _leave_tombstone(books: Books, table: TableRow, command: c.VoidHand) -> None:
    row = HandRow(
        table_id=command.table,
        hand=command.hand,
        epoch=command.epoch,
        outcome=HandOutcome.VOID,
        steps=1,
        last_round=0,
        opened_ms=books.now_ms,
        closed_ms=books.now_ms,
        reason=command.reason,
    )
    books.hands[row.table_id, row.hand] = row
    books.new_hands[row.table_id, row.hand] = row
    if not table.open_hand and command.hand > table.last_hand:
        table.last_hand = command.hand
        books.changed_tables.add(command.table)
