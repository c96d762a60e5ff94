"""Decisions about reservations: cash held for a buy-in until an outside cashier has said yes, or no, or too late.

A reservation ends once, in whichever way comes first, and an end that comes before its beginning keeps it from
beginning. What it holds is the whole balance of an account of its own, which is dropped, empty, at its end.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from services.runtime.errors import Fault
from services.wallet import chart, limits
from services.wallet import commands as c
from services.wallet.books import Books, Move, ReservationRow
from services.wallet.cash_desk import require_active, require_player
from services.wallet.chart import AccountKind, ReservationState, TransferCode
from services.wallet.seats_desk import (
    at_epoch,
    open_sitting,
    require_currency,
    require_new_sitting,
    settle_currency,
    stale_epoch,
)


def reserve_buy_in(books: Books, command: c.ReserveBuyIn) -> c.Reservation:
    """Holds cash for a buy-in.

    Refused with STALE_EPOCH, RESERVATION_CLOSED (also by a release that came first), RESERVATION_EXISTS,
    SITTING_CLOSED, SITTING_EXISTS, PLAYER_NOT_FOUND, CURRENCY_MISMATCH, PLAYER_FROZEN, LIMIT_EXCEEDED,
    INSUFFICIENT_FUNDS.
    """
    table = at_epoch(books, command.table, command.epoch)
    known = books.reservations.get(command.reservation)
    if known is not None and known.state is not ReservationState.OPEN:
        raise _closed(known, known.state)
    if known is not None:
        raise Fault("RESERVATION_EXISTS", f"reservation {command.reservation} is open", reservation=command.reservation)
    require_new_sitting(books, command.sitting)
    player = require_player(books, command.player)
    require_currency(table, command.currency)
    require_active(player)
    cash = books.open_cash(command.player, command.currency)
    held = chart.reserved_account(command.reservation)
    books.open_account(held, AccountKind.RESERVED, command.player, command.currency)
    limits.require_buy_in(books, cash, command.amount_minor)
    books.post([Move(TransferCode.RESERVE, cash, held, command.amount_minor)])
    limits.count(books, cash, bought_in=command.amount_minor)
    row = ReservationRow(
        reservation=command.reservation,
        table_id=command.table,
        epoch=command.epoch,
        sitting=command.sitting,
        player=command.player,
        seat=command.seat,
        currency=command.currency,
        amount=command.amount_minor,
        state=ReservationState.OPEN,
        opened_ms=books.now_ms,
        expires_ms=books.now_ms + command.hold_ms,
        closed_ms=0,
    )
    _add(books, row)
    return reservation_of(row)


def commit_reservation(books: Books, command: c.CommitReservation) -> c.Stack:
    """Opens the sitting that was reserved for, under the epoch of the reservation.

    Refused with RESERVATION_NOT_FOUND, RESERVATION_CLOSED (also past its time, swept or not), STALE_EPOCH,
    SITTING_CLOSED, SITTING_EXISTS, CURRENCY_MISMATCH, PLAYER_FROZEN.
    """
    row = _require(books, command)
    if row.state is not ReservationState.OPEN:
        raise _closed(row, row.state)
    if books.now_ms >= row.expires_ms:
        raise _closed(row, ReservationState.EXPIRED)
    table = books.at_table(row.table_id)
    if row.epoch < table.epoch:
        # Who was to be seated is not known any more at a table that was rebuilt.
        raise stale_epoch(table, row.epoch)
    require_new_sitting(books, row.sitting)
    require_currency(table, row.currency)
    require_active(require_player(books, row.player))
    held = chart.reserved_account(row.reservation)
    stack = chart.stack_account(row.sitting)
    books.open_account(stack, AccountKind.STACK, row.player, row.currency)
    books.post([Move(TransferCode.BUY_IN, held, stack, row.amount)])
    settle_currency(books, table, row.currency)
    open_sitting(books, table, sitting=row.sitting, player=row.player, seat=row.seat, currency=row.currency)
    _close(books, row, ReservationState.COMMITTED)
    return c.Stack(books.balance(stack))


def release_reservation(books: Books, command: c.ReleaseReservation) -> c.Released:
    """Gives the cash back; a reservation that gave it back before answers the same again.

    Refused with RESERVATION_NOT_FOUND (an unknown one is closed all the same, so that it cannot be made later),
    RESERVATION_CLOSED (outcome `committed`).
    """
    if command.reservation not in books.reservations:
        _add(books, _tombstone(books, command))
        raise reservation_not_found(command.reservation)
    row = _require(books, command)
    if row.state is ReservationState.COMMITTED:
        raise _closed(row, row.state)
    return _give_back(books, row, ReservationState.RELEASED)


def expire_reservation(books: Books, command: c.ExpireReservation) -> c.Released:
    """Gives the cash back of a reservation whose time the sweeper saw pass. Refused as a release is."""
    row = _require(books, command)
    if row.state is ReservationState.COMMITTED:
        raise _closed(row, row.state)
    return _give_back(books, row, ReservationState.EXPIRED)


def reservation_of(row: ReservationRow | Row[Any]) -> c.Reservation:
    """A reservation's row, in the books or read alone, as the house shows it."""
    return c.Reservation(
        reservation=row.reservation,
        table=row.table_id,
        epoch=row.epoch,
        sitting=row.sitting,
        player=row.player,
        seat=row.seat,
        currency=row.currency,
        amount_minor=row.amount,
        state=ReservationState(row.state),
        opened_ms=row.opened_ms,
        expires_ms=row.expires_ms,
        closed_ms=row.closed_ms,
    )


def _give_back(books: Books, row: ReservationRow, state: ReservationState) -> c.Released:
    if row.state is ReservationState.OPEN:
        cash = books.open_cash(row.player, row.currency)
        books.post([Move(TransferCode.RELEASE, chart.reserved_account(row.reservation), cash, row.amount)])
        limits.give_back(books, cash, row.amount, row.opened_ms)
        _close(books, row, state)
    return c.Released(row.amount)


def _require(books: Books, command: c.CommitReservation | c.ReleaseReservation | c.ExpireReservation) -> ReservationRow:
    row = books.reservations.get(command.reservation)
    if row is None or row.table_id != command.table or not row.player:
        raise reservation_not_found(command.reservation)
    return row


def _close(books: Books, row: ReservationRow, state: ReservationState) -> None:
    books.drop_account(chart.reserved_account(row.reservation))
    row.state = state
    row.closed_ms = books.now_ms
    books.changed_reservations.add(row.reservation)


def _add(books: Books, row: ReservationRow) -> None:
    books.reservations[row.reservation] = row
    books.new_reservations[row.reservation] = row


def _tombstone(books: Books, command: c.ReleaseReservation) -> ReservationRow:
    return ReservationRow(
        reservation=command.reservation,
        table_id=command.table,
        epoch=0,
        sitting="",
        player="",
        seat=0,
        currency="",
        amount=0,
        state=ReservationState.RELEASED,
        opened_ms=books.now_ms,
        expires_ms=books.now_ms,
        closed_ms=books.now_ms,
    )


def _closed(row: ReservationRow, state: ReservationState) -> Fault:
    outcome = state.name.lower()
    return Fault(
        "RESERVATION_CLOSED",
        f"reservation {row.reservation} is {outcome}",
        reservation=row.reservation,
        outcome=outcome,
    )


def reservation_not_found(reservation: str) -> Fault:
    """The refusal for a reservation that this table does not have."""
    return Fault(
        "RESERVATION_NOT_FOUND", f"there is no reservation {reservation} at this table", reservation=reservation
    )
