"""Questions about reservations: one, those that are open, those that are past their time, what a player has held."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, select, text

from services.wallet import commands as c
from services.wallet.reserve_desk import reservation_not_found, reservation_of
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
        raise reservation_not_found(reservation)
    return reservation_of(row)


def open_ones(conn: Connection, table: str, after: str, limit: int) -> tuple[c.Reservation, ...]:
    """Open reservations, of one table or (``) of all, by id after the one given."""
    query = select(*reservations.c).where(_OPEN, reservations.c.reservation > after)
    if table:
        query = query.where(reservations.c.table_id == table)
    return tuple(reservation_of(row) for row in conn.execute(query.order_by(reservations.c.reservation).limit(limit)))


def past_their_time(conn: Connection, now_ms: int, limit: int) -> tuple[c.Reservation, ...]:
    """Open reservations whose time is over, the one that waits longest first."""
    found = conn.execute(
        select(*reservations.c)
        .where(_OPEN, reservations.c.expires_ms <= now_ms)
        .order_by(reservations.c.expires_ms, reservations.c.reservation)
        .limit(limit)
    )
    return tuple(reservation_of(row) for row in found)


def held(conn: Connection, player: str) -> tuple[c.Balance, ...]:
    """What a player's open reservations hold, by currency."""
    found = conn.execute(
        select(accounts.c.currency, func.sum(accounts.c.balance))
        .where(_HOLDS, accounts.c.owner == player)
        .group_by(accounts.c.currency)
        .order_by(accounts.c.currency)
    )
    return tuple(c.Balance(currency, int(amount)) for currency, amount in found)
