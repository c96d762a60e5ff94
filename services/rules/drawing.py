"""The draw: who draws next, what may be discarded, the one four-card draw (RULES 3.5, 11)."""

from __future__ import annotations

from services.rules.cards import format_card
from services.rules.events import Discarded
from services.rules.refusals import Refusal
from services.rules.state import HandState


def next_to_draw(state: HandState) -> int:
    """The first live position that has not drawn, all-in ones too; -1 when all have."""
    live = state.live
    for position, drawn in enumerate(state.drawn):
        if drawn < 0 and live >> position & 1:
            return position
    return -1


def following(state: HandState, position: int) -> int:
    """Who draws after this position; -1 when it is the last."""
    live = state.live
    for later in range(position + 1, len(state.seats)):
        if live >> later & 1:
            return later
    return -1


def four_card_draw_taken(state: HandState) -> bool:
    """True if the hand has one four-card draw and somebody asked for it already."""
    return state.rulebook.single_four_card_draw and 4 in state.drawn


def most_discards(state: HandState) -> int:
    """How many cards the seat to draw may discard."""
    most = state.rulebook.max_draw
    return min(most, 3) if four_card_draw_taken(state) else most


def discard(state: HandState, position: int, cards: tuple[int, ...], by_clock: bool) -> Discarded:
    """The discard of the position to draw, or a `Refusal`."""
    count = len(cards)
    most = most_discards(state)
    if count > most:
        if count <= state.rulebook.max_draw:
            raise Refusal("FOUR_CARD_DRAW_TAKEN", tried=count, most=most)
        raise Refusal("TOO_MANY_DISCARDS", tried=count, most=most)
    hand = state.hands[position]
    for card in cards:
        if card not in hand:
            raise Refusal("CARD_NOT_HELD", cards=_name(card))
    if len(set(cards)) < count:
        raise Refusal("DUPLICATE_CARD", cards=_name(next(card for card in cards if cards.count(card) > 1)))
    late = count == 4 and state.rulebook.single_four_card_draw
    after = -1 if count else following(state, position)
    return Discarded(
        state.seats[position],
        count,
        count - late,
        by_clock,
        by_clock and state.rulebook.missed_draw == "stand_pat_no_raise",
        cards,
        state.seat_at(after),
    )


def burns_before_late_card(state: HandState) -> bool:
    """True if the seat with the four-card draw was the last to draw, so that a card is burned before its fourth."""
    return following(state, state.late) < 0


def _name(card: int) -> str:
    return format_card(card) if 0 <= card < 52 else str(card)
