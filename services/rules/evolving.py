"""The state after an event. Nothing is decided here, and no rule is looked up: the events carry what is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from services.rules.events import (
    Acted,
    AnyEvent,
    BetsCollected,
    CardBurned,
    CardsDealt,
    CardsDrawn,
    DeckReshuffled,
    Discarded,
    ForcedBetPosted,
    ForcedBetsCompleted,
    HandEnded,
    HandMucked,
    HandShown,
    PassedOut,
    PotAwarded,
    StageStarted,
    UncalledReturned,
)
from services.rules.refusals import StateBroken
from services.rules.state import HandState, PotPaid, with_entry


def evolve(state: HandState, event: AnyEvent) -> HandState:
    """The state after `event`. Raises `StateBroken` for an event whose money contradicts the state's."""
    return _EVOLVERS[type(event)](state, event)


def _forced_bet_posted(state: HandState, event: ForcedBetPosted) -> HandState:
    position, amount = state.seats.index(event.seat), event.amount
    stacks = with_entry(state.stacks, position, state.stacks[position] - amount)
    if event.kind == "dead_post":
        return replace(state, stacks=stacks, dead=state.dead + amount)
    put = with_entry(state.put, position, state.put[position] + amount) if event.live else state.put
    return replace(
        state,
        stacks=stacks,
        put=put,
        total=with_entry(state.total, position, state.total[position] + amount),
        forced=with_entry(state.forced, position, state.forced[position] + amount),
    )


def _forced_bets_completed(state: HandState, event: ForcedBetsCompleted) -> HandState:
    return replace(state, stage="deal", level=event.level)


def _cards_dealt(state: HandState, event: CardsDealt) -> HandState:
    return replace(state, hands=with_entry(state.hands, state.seats.index(event.seat), event.cards))


def _stage_started(state: HandState, event: StageStarted) -> HandState:
    to_act = -1 if event.seat is None else state.seats.index(event.seat)
    return replace(
        state,
        stage=event.stage,
        to_act=to_act,
        closed=0,
        level=event.level,
        least_raise=event.least_raise,
        full_level=event.level,
        bets=event.bets,
    )


def _acted(state: HandState, event: Acted) -> HandState:
    seats = state.seats
    position, next_seat, kind = seats.index(event.seat), event.next_seat, event.kind
    to_act = -1 if next_seat is None else seats.index(next_seat)
    bit = 1 << position
    if kind == "fold":
        return replace(state, live=state.live & ~bit, to_act=to_act)
    if kind == "check":
        return replace(state, closed=state.closed | bit, to_act=to_act)
    added = event.added
    behind, in_round, in_hand = list(state.stacks), list(state.put), list(state.total)
    behind[position] -= added
    in_round[position] = event.to
    in_hand[position] += added
    stacks, put, total = tuple(behind), tuple(in_round), tuple(in_hand)
    if kind == "call":
        return replace(state, stacks=stacks, put=put, total=total, closed=state.closed | bit, to_act=to_act)
    return replace(
        state,
        stacks=stacks,
        put=put,
        total=total,
        closed=bit if event.full else state.closed | bit,
        to_act=to_act,
        level=event.level,
        least_raise=event.least_raise,
        full_level=event.full_level,
        bets=event.bets,
        aggressor=position if state.stage == "second_round" else -1,
    )


def _uncalled_returned(state: HandState, event: UncalledReturned) -> HandState:
    position, amount = state.seats.index(event.seat), event.amount
    return replace(
        state,
        stacks=with_entry(state.stacks, position, state.stacks[position] + amount),
        put=with_entry(state.put, position, max(0, state.put[position] - amount)),
        total=with_entry(state.total, position, state.total[position] - amount),
        returned=with_entry(state.returned, position, state.returned[position] + amount),
    )


def _bets_collected(state: HandState, event: BetsCollected) -> HandState:
    if event.pot != state.pot:
        raise StateBroken(f"the pot is {state.pot}, the bets collected make it {event.pot}")
    return replace(state, put=(0,) * len(state.seats), level=0, to_act=-1)


def _discarded(state: HandState, event: Discarded) -> HandState:
    position = state.seats.index(event.seat)
    drawn = with_entry(state.drawn, position, event.count)
    barred = state.barred | 1 << position if event.barred else state.barred
    if not event.count:
        to_act = -1 if event.next_seat is None else state.seats.index(event.next_seat)
        return replace(state, drawn=drawn, barred=barred, to_act=to_act)
    thrown = event.cards
    kept = tuple([card for card in state.hands[position] if card not in thrown])
    return replace(
        state,
        drawn=drawn,
        to_act=-1,
        exchange=position,
        hands=with_entry(state.hands, position, kept),
        discards=with_entry(state.discards, position, event.cards),
        late=position if event.draw_now < event.count else state.late,
    )


def _deck_reshuffled(state: HandState, event: DeckReshuffled) -> HandState:
    return replace(state, reshuffles=event.number)


def _card_burned(state: HandState, _event: CardBurned) -> HandState:
    return replace(state, burned=state.burned + 1)


def _cards_drawn(state: HandState, event: CardsDrawn) -> HandState:
    position = state.seats.index(event.seat)
    hands = with_entry(state.hands, position, state.hands[position] + event.cards)
    if event.late:
        return replace(state, hands=hands, late=-1)
    to_act = -1 if event.next_seat is None else state.seats.index(event.next_seat)
    return replace(state, hands=hands, exchange=-1, to_act=to_act)


def _hand_shown(state: HandState, event: HandShown) -> HandState:
    return replace(state, shown=(*state.shown, state.seats.index(event.seat)))


def _hand_mucked(state: HandState, event: HandMucked) -> HandState:
    return replace(state, mucked=(*state.mucked, state.seats.index(event.seat)))


def _pot_awarded(state: HandState, event: PotAwarded) -> HandState:
    winners = event.winners
    paid = PotPaid(event.amount, winners, event.rake, event.carried)
    return replace(
        state,
        stacks=tuple(stack + winners.get(seat, 0) for seat, stack in zip(state.seats, state.stacks, strict=True)),
        pots=(paid, *state.pots),
        rake=state.rake + event.rake,
        carry_out=state.carry_out + event.carried,
    )


def _passed_out(state: HandState, event: PassedOut) -> HandState:
    return replace(state, carry_out=event.carry)


def _hand_ended(state: HandState, event: HandEnded) -> HandState:
    paid = state.carry_out if event.outcome == "passed_out" else sum([pot.amount for pot in state.pots])
    if paid != state.pot or event.stacks != dict(zip(state.seats, state.stacks, strict=True)):
        raise StateBroken(f"{paid} of a pot of {state.pot} are paid; stacks {event.stacks} against {state.stacks}")
    return replace(state, stage="finished", outcome=event.outcome, next_button=event.button, to_act=-1)


_EVOLVERS: dict[type, Callable[[HandState, Any], HandState]] = {
    ForcedBetPosted: _forced_bet_posted,
    ForcedBetsCompleted: _forced_bets_completed,
    CardsDealt: _cards_dealt,
    StageStarted: _stage_started,
    Acted: _acted,
    UncalledReturned: _uncalled_returned,
    BetsCollected: _bets_collected,
    Discarded: _discarded,
    DeckReshuffled: _deck_reshuffled,
    CardBurned: _card_burned,
    CardsDrawn: _cards_drawn,
    HandShown: _hand_shown,
    HandMucked: _hand_mucked,
    PotAwarded: _pot_awarded,
    PassedOut: _passed_out,
    HandEnded: _hand_ended,
}
