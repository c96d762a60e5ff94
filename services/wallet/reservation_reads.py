"""Questions about reservations: one, those that are open, those that are past their time, what a player has held."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Row, func, select, text

from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.chart import ReservationState
from services.wallet.schema import accounts, reservations

# The literal conditions are those of the indexes.
_OPEN: Final = text("reservations.state = 1")
_HOLDS: Final = text("accounts.kind = 7")


def one(conn: Connection, table: str, reservation: str) -> c.Reservation:
    """One reservation as it stands, or RESERVATION_NOT_FOUND."""
    row = conn.execute(
        select(*reservations.c).where(
            reservations.c.reservation == reservation, reservations.c.table_id == table, reservations.c.player != ""
        )
    ).one_or_none()
    if row is None:
        raise Fault(
            "RESERVATION_NOT_FOUND", f"there is no reservation {reservation} at this table", reservation=reservation
        )
    return _shown(row)


def open_ones(conn: Connection, table: str, after: str, limit: int) -> tuple[c.Reservation, ...]:
    """Open reservations, of one table or (``) of all, by id after the one given."""
    query = select(*reservations.c).where(_OPEN, reservations.c.reservation > after)
    if table:
        query = query.where(reservations.c.table_id == table)
    return tuple(_shown(row) for row in conn.execute(query.order_by(reservations.c.reservation).limit(limit)))


def past_their_time(conn: Connection, now_ms: int, limit: int) -> tuple[c.Reservation, ...]:
    """Open reservations whose time is over, the one that waits longest first."""
    found = conn.execute(
        select(*reservations.c)
        .where(_OPEN, reservations.c.expires_ms <= now_ms)
        .order_by(reservations.c.expires_ms, reservations.c.reservation)
        .limit(limit)
    )
    return tuple(_shown(row) for row in found)


def held(conn: Connection, player: str) -> tuple[c.Balance, ...]:
    """What a player's open reservations hold, by currency."""
    found = conn.execute(
        select(accounts.c.currency, func.sum(accounts.c.balance))
        .where(_HOLDS, accounts.c.owner == player)
        .group_by(accounts.c.currency)
        .order_by(accounts.c.currency)
    )
    return tuple(c.Balance(currency, int(amount)) for currency, amount in found)


def _shown(row: Row[Any]) -> c.Reservation:
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
