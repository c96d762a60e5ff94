"""What one viewer may see of a hand: everything public, and of the cards only its own and those shown (RULES 3.8)."""

from __future__ import annotations

import msgspec

from services.rules.betting import NO_ACTIONS, LegalActions
from services.rules.events import Outcome, Stage
from services.rules.hand import legal
from services.rules.state import HandState, PotPaid


class SeatView(msgspec.Struct, frozen=True, gc=False):
    """One seat as the viewer sees it.

    `put` are its chips of this round, `total` of the whole hand; `drawn` is how many cards it asked for, None before
    it drew; `cards` are empty unless they are the viewer's own or were shown; `hand_size` is how many it holds.
    """

    seat: int
    stack: int
    put: int
    total: int
    live: bool
    all_in: bool
    drawn: int | None
    barred: bool
    hand_size: int
    cards: tuple[int, ...]
    shown: bool
    mucked: bool
    returned: int


class HandView(msgspec.Struct, frozen=True, gc=False):
    """A hand as one viewer sees it. `legal` is the viewer's own, and empty unless it is to act.

    `seats` stand clockwise from the button's left. `pot` holds all chips bet so far, the carry included. `discards`
    are the viewer's own. After the hand, `pots` are those paid (main pot first), `next_button` is a seat, else 0.
    """

    stage: Stage
    button: int
    seats: tuple[SeatView, ...]
    to_act: int | None
    level: int
    pot: int
    carry: int
    reshuffles: int
    burned: int
    discards: tuple[int, ...]
    legal: LegalActions
    outcome: Outcome | None
    shown: tuple[int, ...]
    mucked: tuple[int, ...]
    pots: tuple[PotPaid, ...]
    rake: int
    carry_out: int
    next_button: int


def view(state: HandState, viewer: int | None) -> HandView:
    """The hand as the seat `viewer` sees it, or as a spectator does (None, or a seat that is not dealt in)."""
    own = -1 if viewer is None else state.position(viewer)
    to_act = state.seat_at(state.to_act)
    return HandView(
        stage=state.stage,
        button=state.button,
        seats=tuple(_seat_view(state, position, position == own) for position in range(len(state.seats))),
        to_act=to_act,
        level=state.level,
        pot=state.pot,
        carry=state.carry,
        reshuffles=state.reshuffles,
        burned=state.burned,
        discards=state.discards[own] if own >= 0 else (),
        legal=legal(state, viewer) if own >= 0 else NO_ACTIONS,
        outcome=state.outcome,
        shown=tuple(state.seats[position] for position in state.shown),
        mucked=tuple(state.seats[position] for position in state.mucked),
        pots=state.pots,
        rake=state.rake,
        carry_out=state.carry_out,
        next_button=state.next_button,
    )


def _seat_view(state: HandState, position: int, own: bool) -> SeatView:
    hand, stack = state.hands[position], state.stacks[position]
    live = bool(state.live >> position & 1)
    shown = position in state.shown
    drawn = state.drawn[position]
    return SeatView(
        seat=state.seats[position],
        stack=stack,
        put=state.put[position],
        total=state.total[position],
        live=live,
        all_in=live and not stack and state.outcome is None,
        drawn=drawn if drawn >= 0 else None,
        barred=bool(state.barred >> position & 1),
        hand_size=len(hand),
        cards=hand if own or shown else (),
        shown=shown,
        mucked=position in state.mucked,
        returned=state.returned[position],
    )
