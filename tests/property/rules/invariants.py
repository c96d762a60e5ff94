"""What has to hold in every hand, after every event: chips, cards, turns, secrets, and that all accounts agree."""

from __future__ import annotations

from typing import Any

import msgspec

from services.cli.dealt_hand import DealtHand
from services.deck import dealing
from services.rules.codec import dump_event, dump_state, load_event, load_state
from services.rules.commands import Act, Discard
from services.rules.events import (
    Acted,
    AnyEvent,
    BetsCollected,
    ForcedBetPosted,
    HandEnded,
    HandShown,
    StageStarted,
    UncalledReturned,
    private_to,
    redact,
)
from services.rules.hand import decide, evolve, legal
from services.rules.ranking import rank
from services.rules.refusals import REASONS, Refusal
from services.rules.state import HandState
from services.rules.views import view


class Broken(AssertionError):
    """An invariant that does not hold; the text says which."""


def demand(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def check_chips(state: HandState, chips: int) -> None:
    """No chip appears or vanishes, and no account is below zero."""
    in_pots = state.pot - sum(pot.amount for pot in state.pots)
    paid_away = state.rake + state.carry_out
    if state.outcome == "passed_out" or (state.stage != "finished" and state.carry_out and not state.pots):
        in_pots = 0
    demand(sum(state.stacks) + in_pots + paid_away == chips, "chips are conserved")
    demand(min(state.stacks) >= 0 and min(state.put) >= 0 and min(state.total) >= 0, "no account is below zero")
    demand(all(put <= total for put, total in zip(state.put, state.total, strict=True)), "a round is part of the hand")


def check_cards(hand: DealtHand) -> None:
    """Each of the 52 cards is in one place, the engine and the deck agree on live hands, no own discard comes back."""
    state = hand.state
    dealing.check(hand.deck)
    demand(state.reshuffles == hand.deck.shuffle, "every reshuffle is told, and no other")
    demand(state.burned == len(hand.deck.burned), "every burned card is told, and no other")
    if state.stage in ("forced_bets", "deal"):
        return
    for position, seat in enumerate(state.seats):
        held, thrown = set(state.hands[position]), set(state.discards[position])
        demand(len(held) == len(state.hands[position]), "a hand has no card twice")
        demand(not held & thrown, "nobody gets an own discard back")
        if state.live >> position & 1 and seat in hand.deck.hands:
            demand(held == set(hand.deck.hands[seat]), "engine and deck agree on a live hand")
    live = [card for position in state.live_positions() for card in state.hands[position]]
    demand(len(set(live)) == len(live), "no card is in two live hands")


def check_legality(state: HandState) -> None:
    """`legal` and `decide` agree on every kind of action, at and around its bounds; others may do nothing."""
    seat = state.seat_at(state.to_act)
    options = legal(state, seat)
    position = state.to_act
    for other in (*state.seats, None):
        if other != seat:
            demand(legal(state, other) == type(options)(), "only the seat to act has legal actions")
    if options.max_discards is not None:
        hand = state.hands[position]
        for count in range(6):
            demand(_allowed(state, Discard(seat, hand[:count])) == (count <= options.max_discards), "discards agree")
        demand(not _allowed(state, Act(seat, "check")), "no bets in the draw")
        return
    demand(_allowed(state, Act(seat, "fold")) == options.fold, "fold agrees")
    demand(_allowed(state, Act(seat, "check")) == options.check, "check agrees")
    demand(_allowed(state, Act(seat, "call")) == (options.call is not None), "call agrees")
    demand(not (options.check and options.call), "a check and a call exclude each other")
    demand(bool(options.check or options.call or options.fold), "some way out is always legal")
    reach = state.put[position] + state.stacks[position]
    for kind, bounds in (("bet", options.bet), ("raise", options.raise_)):
        least, most = bounds or (1, 0)
        tried = {
            0,
            state.level,
            state.level + 1,
            least - 1,
            least,
            (least + most) // 2,
            most,
            most + 1,
            reach,
            reach + 1,
        }
        for to in tried:
            demand(_allowed(state, Act(seat, kind, to)) == (least <= to <= most), f"{kind} to {to} agrees")
        if bounds:
            demand(state.level < least <= most <= reach, f"the bounds of a {kind} are in order")
    for other in state.seats:
        if other != seat:
            demand(not _allowed(state, Act(other, "fold")), "nobody acts out of turn")


def _allowed(state: HandState, command: Any) -> bool:
    try:
        decide(state, command)
    except Refusal as refusal:
        demand(refusal.reason in REASONS and bool(refusal.message()), "a refusal has a reason and a message")
        return False
    return True


def check_secrets(state: HandState, events: list[AnyEvent]) -> None:
    """No viewer sees a hidden card, in the view or in the events; and every viewer gets every event."""
    for viewer in (None, *state.seats):
        seen = view(state, viewer)
        for seat in seen.seats:
            if seat.seat != viewer and not seat.shown:
                demand(seat.cards == (), "a view holds no hidden card")
        if viewer not in state.seats:
            demand(seen.discards == (), "a spectator sees no discards")
        if viewer != seen.to_act:
            demand(seen.legal == type(seen.legal)(), "a view holds no legal action of another seat")
        for event in events:
            public = redact(event, viewer)
            demand(type(public) is type(event), "an event stays what it is")
            cards = getattr(public, "cards", ())
            if not isinstance(event, HandShown) and event_seat(event) != viewer:
                demand(cards == (), "an event holds no hidden card")
            demand(private_to(event) in ((), (event_seat(event),)), "an event is private to one seat at most")


def event_seat(event: AnyEvent) -> int | None:
    return getattr(event, "seat", None)


def check_replay(start: HandState, hand: DealtHand) -> None:
    """Replaying the events, through bytes, gives the same state; so do the state's own bytes."""
    state = start
    for event in hand.events:
        state = evolve(state, load_event(dump_event(event)))
    demand(state == hand.state, "replaying the events gives the same state")
    demand(load_state(dump_state(hand.state)) == hand.state, "a state survives its bytes")
    demand(isinstance(msgspec.to_builtins(hand.state), list), "a state can be written out")


def check_turns(events: list[AnyEvent]) -> None:
    """No seat acts twice in turn within a round."""
    last = None
    for event in events:
        if isinstance(event, StageStarted):
            last = None
        if isinstance(event, Acted):
            demand(event.seat != last, "no seat acts twice in turn")
            last = event.seat


def check_accounts(table: dict[str, Any], hand: DealtHand) -> None:
    """The batches that the wallet makes of the events leave the pot empty and the stacks as the engine has them."""
    stacks = dict(table["stacks"])
    pot = table["carry"]
    for event in hand.events:
        if isinstance(event, ForcedBetPosted):
            stacks[event.seat] -= event.amount
            pot += event.amount
        if isinstance(event, BetsCollected):
            demand(
                all(chips > 0 for chips in (*event.bets.values(), *event.forced_returned.values())), "no empty posting"
            )
            for seat, chips in event.bets.items():
                stacks[seat] -= chips
                pot += chips
            for seat, chips in event.forced_returned.items():
                stacks[seat] += chips
                pot -= chips
            demand(pot == event.pot, "the pot account holds the pot")
    ended = hand.events[-1]
    demand(isinstance(ended, HandEnded), "the hand ends with its end")
    for paid in hand.state.pots:
        demand(paid.amount == sum(paid.winners.values()) + paid.rake + paid.carried, "a pot is paid out in full")
        for seat, chips in paid.winners.items():
            stacks[seat] += chips
        pot -= paid.amount
    if hand.state.outcome == "passed_out":
        pot -= hand.state.carry_out
    demand(pot == 0, "the pot account is empty in the end")
    demand(stacks == ended.stacks, "the ledger and the engine agree on the stacks")


def check_settlement(hand: DealtHand) -> None:
    """Without rake, the payout is what peeling the contributions off layer by layer gives: another way to count."""
    state = hand.state
    book = state.rulebook
    if state.outcome == "passed_out" or state.rake or book.odd_chips != "left_of_button":
        return
    left = list(state.total)
    won = [0] * len(left)
    live = state.live_positions()
    ranks = {position: rank(state.hands[position]) for position in live}
    bank = state.carry + state.dead
    contenders = set(live)
    while any(left[position] for position in contenders) or bank:
        layer = min((left[position] for position in contenders if left[position]), default=0)
        amount = bank + sum(min(layer, chips) for chips in left)
        left = [max(0, chips - layer) for chips in left]
        best = max(ranks[position] for position in contenders)
        winners = [position for position in live if position in contenders and ranks[position] == best]
        for index, position in enumerate(winners):
            won[position] += amount // len(winners) + (index < amount % len(winners))
        bank = 0
        contenders = {position for position in contenders if left[position]}
        if not contenders:
            break
    if sum(left):
        # Chips above every live seat's are a case of its own.
        return
    found = [0] * len(won)
    for pot in state.pots:
        for seat, chips in pot.winners.items():
            found[state.position(seat)] += chips
    demand(found == won, "peeling off the layers gives the same payout")


def check_uncalled(hand: DealtHand) -> None:
    """What is returned is at most once a round, and never leaves the winner of all alone above the rest."""
    rounds = 0
    for event in hand.events:
        if isinstance(event, BetsCollected):
            rounds = 0
        if isinstance(event, UncalledReturned):
            rounds += 1
            demand(rounds == 1 and event.amount > 0, "chips come back once a round")
