"""Blinds missed by players who have left: they come back to them as to their stack. Pure steps on a `Draft`."""

from __future__ import annotations

from typing import Final

from services.table.draft import Draft
from services.table.state import DEBTS_MAX, Debt, Seat

# For how long a player who left comes back to what was left: the stack, and blinds that were missed.
REENTRY_MS: Final = 120 * 60_000


def note(draft: Draft, seat: Seat) -> None:
    """Remembers what a seat owes whose player leaves it, so that leaving is no way round it."""
    if seat.owes_blind:
        others = [debt for debt in draft.state.debts if debt.player != seat.player and debt.until_ms > draft.now_ms]
        debt = Debt(seat.player, draft.now_ms + REENTRY_MS, seat.owes_dead)
        draft.state.debts = (*others, debt)[-DEBTS_MAX:]


def taken(draft: Draft, player: str) -> Debt | None:
    """What this player left owing lately, or None; it is the new seat's from now on."""
    found = next((debt for debt in draft.state.debts if debt.player == player), None)
    if found is None:
        return None
    draft.state.debts = tuple(debt for debt in draft.state.debts if debt is not found)
    return found if found.until_ms > draft.now_ms else None
