"""Actions chosen before the turn. Nobody else is told of them, and they hold for the next turn of one hand only."""

from __future__ import annotations

from fivedraw.table.v1 import table_service_pb2

from services.rules.awaits import AwaitAction
from services.rules.commands import Act
from services.rules.hand import awaits, legal
from services.runtime.errors import Fault
from services.table import asks
from services.table.draft import Draft
from services.table.state import Hand, Seat, TableState


def preselect(draft: Draft, ask: asks.Preselect, seat: Seat) -> None:
    """Notes the choice of a seat that is in the hand and whose turn it is not."""
    state = draft.state
    hand = state.playing
    if hand is None or hand.number != ask.hand:
        facts = {"hand": str(ask.hand), "current_hand": str(hand.number if hand else 0)}
        raise Fault("STALE_TURN", f"hand {ask.hand} is not being played", **facts)
    at = hand.engine.position(seat.number) if hand.engine is not None else -1
    if hand.engine is None or at < 0 or not hand.engine.live >> at & 1 or not hand.engine.stacks[at]:
        raise Fault("WRONG_STAGE", f"seat {seat.number} has nothing to choose in hand {ask.hand}")
    if hand.turn and state.clock is not None and state.clock.seat == seat.number:
        raise Fault("WRONG_STAGE", "it is your turn already: act")
    most = max(0, min(hand.engine.level - hand.engine.put[at], hand.engine.stacks[at])) if ask.choice == "call" else 0
    draft.change_seat(seat.number, preselected=ask.choice, preselected_hand=hand.number, call_most=most)
    draft.answer(ask.request, table_service_pb2.PreselectActionResponse(call_minor=most))


def choice_of(state: TableState, seat: Seat) -> str:
    """What this seat has chosen for the hand being played, or ''."""
    hand = state.playing
    return seat.preselected if hand is not None and seat.preselected_hand == hand.number else ""


def take(draft: Draft, hand: Hand, number: int) -> Act | None:
    """The chosen action, if it still holds now that the turn has come; the choice is used up either way.

    A turn to draw uses it up too: it was made for a hand of other cards.
    """
    seat = draft.state.seats.get(number)
    if seat is None or hand.engine is None:
        return None
    choice = choice_of(draft.state, seat)
    if not choice:
        return None
    draft.change_seat(number, preselected="", preselected_hand=0, call_most=0)
    if not isinstance(awaits(hand.engine), AwaitAction):
        return None
    allowed = legal(hand.engine, number)
    if choice in ("check", "check_fold") and allowed.check:
        return Act(number, "check")
    if choice == "check_fold" and allowed.fold:
        return Act(number, "fold")
    if choice == "call" and allowed.call is not None and allowed.call <= seat.call_most:
        return Act(number, "call")
    return None
