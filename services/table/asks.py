"""What players and operators can ask of a table. Each names who asks and under which id of their own."""

from __future__ import annotations

import msgspec

from services.table.state import Preselected, Request


class Ask(msgspec.Struct, frozen=True):
    """Base: `request.caller` is `players/{player}` for a player, the token's subject for an operator."""

    request: Request


class SitDown(Ask, frozen=True):
    """Take `seat` (0: any) with `buy_in` chips. `left_with`: the stack this player left the table with lately, or 0."""

    seat: int
    buy_in: int
    left_with: int


class TopUp(Ask, frozen=True):
    """Add chips to the stack."""

    amount: int


class UpdateSeat(Ask, frozen=True):
    """Change one's seat; None stays as it is."""

    sitting_out: bool | None = None
    auto_muck: bool | None = None
    wait_for_blind: bool | None = None
    auto_post: bool | None = None
    auto_rebuy: int | None = None


class Leave(Ask, frozen=True):
    """Leave the table."""


class JoinWaiting(Ask, frozen=True):
    """Wait for a seat."""


class LeaveWaiting(Ask, frozen=True):
    """Wait no longer."""


class Preselect(Ask, frozen=True):
    """Choose an action before the turn; '' takes a choice back."""

    hand: int
    choice: Preselected


class SetSeed(Ask, frozen=True):
    """Give entropy of one's own for the deck of this commitment."""

    commitment: bytes
    seed: bytes


class Say(Ask, frozen=True):
    """Say something to the table."""

    text: str


class TakeAction(Ask, frozen=True):
    """Act in turn. `kind` is a betting action, `discard`, `cut` or `show`."""

    hand: int
    turn: int
    kind: str
    to: int
    cards: tuple[int, ...]
    cut: bytes


class Pause(Ask, frozen=True):
    """Stop the clocks, at once or after the hand."""

    reason: str
    after_hand: bool = False


class Resume(Ask, frozen=True):
    """Let the clocks go on."""


class Close(Ask, frozen=True):
    """Finish the hand, refund the carry, cash everybody out."""

    reason: str


class Void(Ask, frozen=True):
    """Undo the hand being played; `approved_by` is the second person, if there was one."""

    hand: int
    reason: str
    approved_by: str = ""


AnyAsk = (
    SitDown
    | TopUp
    | UpdateSeat
    | Leave
    | JoinWaiting
    | LeaveWaiting
    | Preselect
    | SetSeed
    | Say
    | TakeAction
    | Pause
    | Resume
    | Close
    | Void
)
