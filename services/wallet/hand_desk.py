"""Decisions about hands: forced bets, rounds of bets, award. `closing_desk` has void, fence and refunded carry."""

from __future__ import annotations

from collections.abc import Iterable

from services.runtime.errors import Fault
from services.wallet import chart
from services.wallet import commands as c
from services.wallet.books import Books, HandRow, Move, SittingRow, TableRow
from services.wallet.cash_desk import require_active, require_player
from services.wallet.chart import AccountKind, HandOutcome, TransferCode
from services.wallet.seats_desk import at_epoch, require_currency, require_sitting, settle_currency


def post_forced(books: Books, command: c.PostForced) -> c.Pot:
    """Opens a hand, takes in the carry, posts antes and blinds, locks the stacks dealt in.

    Refused with STALE_EPOCH, HAND_CLOSED, STEP_OUT_OF_ORDER, OTHER_HAND_OPEN, SITTING_NOT_FOUND, SITTING_CLOSED,
    SITTING_NOT_DEALT_IN, CURRENCY_MISMATCH, PLAYER_FROZEN, CARRY_MISMATCH, INSUFFICIENT_FUNDS, BALANCE_OVERFLOW.
    """
    table = at_epoch(books, command.table, command.epoch)
    _require_new_hand(books, table, command.hand)
    seated = [require_sitting(books, command.table, name) for name in command.dealt_in]
    _require_dealt_in((line.sitting for line in command.postings), set(command.dealt_in))
    require_currency(table, command.currency)
    for sitting in seated:
        require_currency(table, sitting.currency)
        require_active(require_player(books, sitting.player))
    carry = chart.carry_account(command.table)
    if books.balance(carry) != command.carry_in_minor:
        raise Fault(
            "CARRY_MISMATCH",
            f"table {command.table} carries {books.balance(carry)}, not {command.carry_in_minor}",
            carry_minor=str(books.balance(carry)),
        )
    pot = chart.pot_account(command.table, command.hand)
    books.open_account(pot, AccountKind.POT, command.table, command.currency)
    moves = [Move(line.code, chart.stack_account(line.sitting), pot, line.amount_minor) for line in command.postings]
    if command.carry_in_minor:
        moves.insert(0, Move(TransferCode.CARRY_IN, carry, pot, command.carry_in_minor))
    books.post_to_pot((command.table, command.hand), moves)
    settle_currency(books, table, command.currency)
    _open_hand(books, table, command, seated)
    return c.Pot(books.balance(pot))


def collect_bets(books: Books, command: c.CollectBets) -> c.Pot:
    """Moves a round's bets into the pot.

    Refused with STALE_EPOCH, HAND_CLOSED, HAND_NOT_OPEN, STEP_OUT_OF_ORDER (the round, or a later one, is in),
    SITTING_NOT_DEALT_IN, RETURN_TOO_LARGE, INSUFFICIENT_FUNDS, BALANCE_OVERFLOW.
    """
    at_epoch(books, command.table, command.epoch)
    hand = require_open_hand(books, command.table, command.hand)
    if command.round <= hand.last_round:
        raise Fault(
            "STEP_OUT_OF_ORDER",
            f"round {hand.last_round} of hand {command.hand} is in",
            step=str(hand.steps),
            round=str(hand.last_round),
            hand=str(command.hand),
        )
    _require_locked(books, hand, (line.sitting for line in (*command.bets, *command.returned)))
    pot = chart.pot_account(command.table, command.hand)
    moves = [Move(line.code, chart.stack_account(line.sitting), pot, line.amount_minor) for line in command.bets]
    moves += [Move(line.code, pot, chart.stack_account(line.sitting), line.amount_minor) for line in command.returned]
    _require_paid(books, hand, moves)
    books.post_to_pot((command.table, command.hand), moves)
    hand.last_round = command.round
    hand.steps += 1
    books.changed_hands.add((hand.table_id, hand.hand))
    return c.Pot(books.balance(pot))


def award_pot(books: Books, command: c.AwardPot) -> c.Awarded:
    """Pays the pot out to the unit, closes the hand, unlocks its stacks.

    Refused with STALE_EPOCH, HAND_CLOSED, HAND_NOT_OPEN, SITTING_NOT_DEALT_IN, POT_MISMATCH, RETURN_TOO_LARGE.
    """
    table = at_epoch(books, command.table, command.epoch)
    hand = require_open_hand(books, command.table, command.hand)
    _require_locked(books, hand, (line.sitting for line in command.wins))
    pot = chart.pot_account(command.table, command.hand)
    paid = sum(line.amount_minor for line in command.wins) + command.rake_minor + command.carry_out_minor
    if paid != books.balance(pot):
        raise Fault(
            "POT_MISMATCH",
            f"the pot of hand {command.hand} holds {books.balance(pot)}, the award pays {paid}",
            pot_minor=str(books.balance(pot)),
        )
    moves = [Move(line.code, pot, chart.stack_account(line.sitting), line.amount_minor) for line in command.wins]
    _require_paid(books, hand, moves)
    if command.rake_minor:
        rake = chart.rake_account(table.currency, books.shard)
        books.open_account(rake, AccountKind.RAKE, "house", table.currency)
        moves.append(Move(TransferCode.RAKE, pot, rake, command.rake_minor))
    if command.carry_out_minor:
        carry = chart.carry_account(command.table)
        books.open_account(carry, AccountKind.CARRY, command.table, table.currency)
        moves.append(Move(TransferCode.CARRY_OUT, pot, carry, command.carry_out_minor))
    books.post(moves)
    if not command.carry_out_minor:
        table.carry_since_hand = 0
    elif not table.carry_since_hand:
        table.carry_since_hand = command.hand
    return c.Awarded(close_hand(books, table, hand, HandOutcome.AWARDED, reason=""))


def require_open_hand(books: Books, table_id: str, number: int) -> HandRow:
    """The hand if it is open, or HAND_CLOSED with its outcome, HAND_NOT_OPEN."""
    hand = books.hands.get((table_id, number))
    if hand is None:
        table = books.at_table(table_id)
        raise Fault(
            "HAND_NOT_OPEN",
            f"hand {number} was never opened",
            hand=str(number),
            open_hand=str(table.open_hand),
            last_hand=str(table.last_hand),
        )
    if hand.outcome is not HandOutcome.OPEN:
        raise hand_closed(hand.hand, hand.outcome)
    return hand


def close_hand(
    books: Books, table: TableRow, hand: HandRow, outcome: HandOutcome, *, reason: str
) -> tuple[c.SittingStack, ...]:
    """Marks an open hand closed, drops its empty pot, unlocks its stacks, and says what they hold."""
    books.drop_account(chart.pot_account(hand.table_id, hand.hand))
    hand.outcome = outcome
    hand.steps += 1
    hand.closed_ms = books.now_ms
    hand.reason = reason
    books.changed_hands.add((hand.table_id, hand.hand))
    table.open_hand = 0
    books.changed_tables.add(table.table_id)
    seated = books.locked_by(table.table_id, hand.hand)
    for sitting in seated:
        sitting.locked_hand = 0
        books.changed_sittings.add(sitting.sitting)
    return tuple(stack_of(books, sitting) for sitting in seated)


def stack_of(books: Books, sitting: SittingRow) -> c.SittingStack:
    """A sitting's stack as the contract shows it."""
    account = chart.stack_account(sitting.sitting)
    return c.SittingStack(sitting.sitting, sitting.player, books.balance(account), sitting.open)


def hand_closed(number: int, outcome: HandOutcome) -> Fault:
    """The refusal of a step for a hand that is over; the metadata says how it ended."""
    ended = "awarded" if outcome is HandOutcome.AWARDED else "void"
    return Fault("HAND_CLOSED", f"hand {number} is {ended}", hand=str(number), outcome=ended)


def _require_new_hand(books: Books, table: TableRow, number: int) -> None:
    known = books.hands.get((table.table_id, number))
    if known is not None and known.outcome is not HandOutcome.OPEN:
        raise hand_closed(number, known.outcome)
    if known is not None:
        raise Fault("STEP_OUT_OF_ORDER", f"hand {number} is open already", hand=str(number), step=str(known.steps))
    if number <= table.last_hand:
        # Hand numbers ascend, so whoever opens this one has lost its place; nothing of it was ever posted.
        raise Fault(
            "HAND_CLOSED",
            f"hand {number} was passed over; the table is past hand {table.last_hand}",
            hand=str(number),
            outcome="void",
            last_hand=str(table.last_hand),
        )
    if table.open_hand:
        raise Fault(
            "OTHER_HAND_OPEN", f"hand {table.open_hand} is open at table {table.table_id}", hand=str(table.open_hand)
        )


def _require_paid(books: Books, hand: HandRow, moves: Iterable[Move]) -> None:
    """Refuses to return to a sitting more than it put into this hand's pot, bets of the same step counted."""
    paid = books.paid_in.get((hand.table_id, hand.hand))
    if paid is None:
        return
    left = dict(paid)
    for move in moves:
        if move.code in chart.PAYING_IN:
            left[move.debit] = left.get(move.debit, 0) + move.amount_minor
        elif move.code is TransferCode.RETURN:
            most = left.get(move.credit, 0)
            if move.amount_minor > most:
                sitting = move.credit.removeprefix("stack/")
                raise Fault(
                    "RETURN_TOO_LARGE",
                    f"{move.amount_minor} to {sitting}, of whose chips hand {hand.hand} holds {most}",
                    sitting=sitting,
                    hand=str(hand.hand),
                    returned_minor=str(move.amount_minor),
                    paid_minor=str(most),
                )
            left[move.credit] = most - move.amount_minor


def _require_locked(books: Books, hand: HandRow, names: Iterable[str]) -> None:
    dealt_in = {row.sitting for row in books.locked_by(hand.table_id, hand.hand)}
    _require_dealt_in(names, dealt_in)


def _require_dealt_in(names: Iterable[str], dealt_in: set[str]) -> None:
    for name in names:
        if name not in dealt_in:
            raise Fault("SITTING_NOT_DEALT_IN", f"sitting {name} is not in this hand", sitting=name)


def _open_hand(books: Books, table: TableRow, command: c.PostForced, seated: list[SittingRow]) -> None:
    row = HandRow(
        table_id=command.table,
        hand=command.hand,
        epoch=command.epoch,
        outcome=HandOutcome.OPEN,
        steps=1,
        last_round=0,
        opened_ms=books.now_ms,
        closed_ms=0,
        reason="",
    )
    books.hands[row.table_id, row.hand] = row
    books.new_hands[row.table_id, row.hand] = row
    for sitting in seated:
        sitting.locked_hand = command.hand
        books.changed_sittings.add(sitting.sitting)
    table.open_hand = command.hand
    table.last_hand = command.hand
    books.changed_tables.add(command.table)
