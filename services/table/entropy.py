"""Players' own entropy for the next shuffle: taken once the house has committed to its seed, and no more afterwards.

`TableState.commitment` is the window: set when a commitment is told, empty from the moment the shuffle is asked for.
"""

from __future__ import annotations

from fivedraw.table.v1 import table_service_pb2

from services.runtime.errors import Fault
from services.table import asks
from services.table.draft import Draft
from services.table.state import Seat, SeatSeed, ShuffleDeck


def set_seed(draft: Draft, ask: asks.SetSeed, seat: Seat) -> None:
    """Keeps a seated player's seed for the deck of this commitment, in place of an earlier one; nobody is told yet."""
    state = draft.state
    if not state.commitment or ask.commitment != state.commitment:
        facts = {"commitment": state.commitment.hex()}
        raise Fault("COMMITMENT_NOT_OPEN", f"{state.name} takes no seeds for the commitment given", **facts)
    draft.change_seat(seat.number, seed=ask.seed)
    hand = state.last_hand if state.playing is not None else state.last_hand + 1
    draft.answer(ask.request, table_service_pb2.SetPlayerSeedResponse(hand=hand))


def committed(draft: Draft, commitment: bytes) -> None:
    """The house has told this commitment (or, if empty, none): seeds for any other one are void."""
    state = draft.state
    if commitment == state.commitment:
        return
    state.commitment = commitment
    for seat in list(state.seats.values()):
        if seat.seed:
            draft.change_seat(seat.number, seed=b"")


def ask_for_shuffle(draft: Draft, cut: bytes, cut_by: int) -> None:
    """Asks for the shuffle with the cut and the seeds of those dealt in; from now on none are taken."""
    state = draft.state
    hand = draft.change_hand()
    dealt_in = [
        state.seats[number]
        for number in sorted(hand.seats)
        if number in state.seats and state.seats[number].sitting == hand.sittings[number]
    ]
    seeds = tuple(SeatSeed(seat.number, seat.seed) for seat in dealt_in if seat.seed)
    committed(draft, b"")
    draft.add_effect(ShuffleDeck, cut=cut, cut_by=cut_by, seeds=seeds)
