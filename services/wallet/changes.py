"""What the house changes of a player (freeze, limits): a row of its own, and a batch without transfers.

As a batch it is in the chain, so that the audit can hold players, their limits and the list of changes to what was
sealed.
"""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import Connection, func, insert, select, text

from services.wallet import commands as c
from services.wallet.group import OK
from services.wallet.schema import batches, player_changes
from services.wallet.store import SEALING_LOCK


class StateChanged(msgspec.Struct, frozen=True):
    """The content of a change of state: who (`person/{subject}`) made it, and why."""

    player: str
    state: int
    reason: str
    changed_by: str


class LimitsChanged(msgspec.Struct, frozen=True):
    """The content of a change of limits; `state` is that of the player at the time."""

    player: str
    currency: str
    deposit_day_max_minor: int
    buy_in_day_max_minor: int
    state: int
    reason: str
    changed_by: str


_OPERATIONS: Final = {StateChanged: c.SetPlayerState.__name__, LimitsChanged: c.SetPlayerLimits.__name__}


def begin(conn: Connection) -> None:
    """To be called before anything is locked: no seal passes over the batch that `book` will write.

    The sealer waits for all who hold this lock, so whoever asked for it under a row's lock could wait for ever.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock_shared(:lock)"), {"lock": SEALING_LOCK})


def book(conn: Connection, change: StateChanged | LimitsChanged, now_ms: int) -> None:
    """Writes the change and its batch; the player's row must be locked, so that changes are numbered in their order."""
    number = conn.execute(
        insert(player_changes)
        .values(
            player=change.player,
            state=change.state,
            reason=said_of(change),
            changed_by=change.changed_by,
            changed_ms=now_ms,
        )
        .returning(player_changes.c.change_no)
    ).scalar_one()
    conn.execute(
        insert(batches).values(
            batch_no=_next_number(conn),
            # No caller's namespace, so that no batch of a caller's can have this key.
            batch_key=f"change {number}",
            operation=_OPERATIONS[type(change)],
            table_id="",
            hand=0,
            content=msgspec.json.encode(change).decode(),
            outcome=OK,
            answer="{}",
            line_count=0,
            committed_ms=now_ms,
        )
    )


def said_of(change: StateChanged | LimitsChanged) -> str:
    """The change in words, as `player_changes` has it."""
    if isinstance(change, StateChanged):
        return change.reason
    maxima = change.deposit_day_max_minor, change.buy_in_day_max_minor
    return limits_in_words(change.currency, *maxima, change.reason)


def limits_in_words(currency: str, deposit_day_max_minor: int, buy_in_day_max_minor: int, reason: str) -> str:
    """A change of limits in one sentence."""
    return f"limits {currency} deposit {deposit_day_max_minor} buy-in {buy_in_day_max_minor}: {reason}"


def _next_number(conn: Connection) -> int:
    if conn.dialect.name == "postgresql":
        return int(conn.execute(text("SELECT nextval('batch_numbers')")).scalar_one())
    return (conn.scalar(select(func.max(batches.c.batch_no))) or 0) + 1
