"""Whether the house wants a table open, paused or closing, as the registry keeps it beside the table's own state.

Every change of it has the next number. The registry is told before a change is committed, so that it is never behind
what somebody was answered; where the two differ, the greater number is the newer wish.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from services.table.state import TableState

WantedMode = Literal["open", "pausing", "paused", "closing"]


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What is wanted of a table, and why. `pausing`: paused as soon as its hand is over."""

    mode: WantedMode = "open"
    reason: str = ""
    number: int = 0


UNTOUCHED: Final = Wanted()


def wanted_of(state: TableState) -> Wanted:
    """What is wanted of a table by its own state. One that is closed was wanted closing."""
    if state.mode == "open":
        if state.pause_after:
            return Wanted("pausing", state.pause_after, state.mode_number)
        return Wanted("open", "", state.mode_number) if state.mode_number else UNTOUCHED
    return Wanted("closing" if state.mode == "closed" else state.mode, state.mode_reason, state.mode_number)


def fields_of(wanted: Wanted) -> dict[str, Any]:
    """The fields of a `TableState` that is made with this wish."""
    if wanted.mode == "pausing":
        return {"pause_after": wanted.reason, "mode_number": wanted.number}
    return {"mode": wanted.mode, "mode_reason": wanted.reason, "mode_number": wanted.number}


def keep_newer(state: TableState, stale: TableState) -> None:
    """Gives a table that is rebuilt, by what the registry keeps, the mode of its old state where that is no older."""
    if state.mode == "closed" or stale.mode_number < state.mode_number:
        return
    # One that was closed ends once more: whether the registry was told so is not known.
    state.mode = "closing" if stale.mode == "closed" else stale.mode
    state.mode_reason, state.pause_after, state.mode_number = stale.mode_reason, stale.pause_after, stale.mode_number
