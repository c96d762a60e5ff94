"""One hand from the forced bets to the payout: commands in, events out, state from events (RULES 3).

    state = start_hand(rulebook, {1: 500, 2: 500, 3: 500}, button=1)
    events = decide(state, Begin())            # or a Refusal
    for event in events:
        state = evolve(state, event)
    awaits(state)                              # AwaitDeal(seats=(2, 3, 1))

The engine is pure: cards arrive with commands, clocks and chance are somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from services.rules import betting, drawing
from services.rules.awaits import (
    Await,
    AwaitAction,
    AwaitBegin,
    AwaitDeal,
    AwaitDiscard,
    AwaitExchange,
    AwaitLateCard,
    AwaitNothing,
)
from services.rules.betting import NO_ACTIONS, LegalActions
from services.rules.cards import DECK
from services.rules.commands import (
    Act,
    AnyCommand,
    Begin,
    ClockRanOut,
    DeliverDeal,
    DeliverExchange,
    DeliverLateCard,
    Discard,
    Show,
)
from services.rules.events import (
    Acted,
    AnyEvent,
    BetsCollected,
    CardBurned,
    CardsDealt,
    CardsDrawn,
    DeckReshuffled,
    ForcedBetsCompleted,
    HandShown,
    StageStarted,
    UncalledReturned,
)
from services.rules.evolving import evolve
from services.rules.forced import forced_bets
from services.rules.pots import uncalled
from services.rules.ranking import describe, rank
from services.rules.refusals import CommandInvalid, Refusal
from services.rules.showdown import passed_out, showdown, uncontested
from services.rules.starting import start_hand
from services.rules.state import HandState

__all__ = ["awaits", "decide", "evolve", "legal", "start_hand", "step"]

_DECK = frozenset(DECK)

Events = tuple[AnyEvent, ...]
Step = tuple[Events, HandState]


def awaits(state: HandState) -> Await:
    """What the hand waits for."""
    stage = state.stage
    if state.to_act >= 0:
        seat = state.seats[state.to_act]
        return AwaitDiscard(seat) if stage == "draw" else AwaitAction(seat)
    if stage == "draw":
        mixed = state.rulebook.reshuffle == "mixed"
        folded = state.folded_seats()
        position = state.exchange
        if position >= 0:
            discards = state.discards[position]
            draw_now = len(discards) - (position == state.late)
            return AwaitExchange(state.seats[position], discards, draw_now, folded, mixed)
        return AwaitLateCard(state.seats[state.late], drawing.burns_before_late_card(state), folded, mixed)
    if stage == "finished":
        return AwaitNothing()
    return AwaitDeal(state.seats) if stage == "deal" else AwaitBegin()


def legal(state: HandState, seat: int | None) -> LegalActions:
    """What `seat` may do now; nothing unless it is its turn."""
    position = state.to_act
    if position < 0 or state.seats[position] != seat:
        return NO_ACTIONS
    if state.stage == "draw":
        return LegalActions(max_discards=drawing.most_discards(state))
    return betting.legal_bets(state, position)


def decide(state: HandState, command: AnyCommand) -> Events:
    """The events that follow from a command; the state is untouched.

    Raises `Refusal` where the rules do not allow it, `CommandInvalid` where no correct caller would send it.
    """
    return _STEPS[type(command)](state, command)[0]


def step(state: HandState, command: AnyCommand) -> Step:
    """The events that follow from a command, as `decide` gives them, and the state after them, as `evolve` does."""
    return _STEPS[type(command)](state, command)


class _Story:
    """Events in the making, and the state after them, for what follows without anybody's choice."""

    def __init__(self, state: HandState) -> None:
        self.state = state
        self.events: list[AnyEvent] = []

    def tell(self, *events: AnyEvent) -> None:
        state = self.state
        for event in events:
            state = evolve(state, event)
        self.state = state
        self.events += events

    def told(self) -> Step:
        return tuple(self.events), self.state


def _begin(state: HandState, _command: Begin) -> Step:
    if state.stage != "forced_bets":
        raise CommandInvalid("this hand has begun already")
    story = _Story(state)
    story.tell(*forced_bets(state))
    story.tell(ForcedBetsCompleted(state.rulebook.big_blind, story.state.pot))
    return story.told()


def _deliver_deal(state: HandState, command: DeliverDeal) -> Step:
    if state.stage != "deal":
        raise CommandInvalid("no deal is due")
    hands = command.hands
    if hands.keys() != set(state.seats) or {*map(len, hands.values())} != {5}:
        raise CommandInvalid("the deal has to be five cards for each seat of the hand")
    _check_fresh(state, [card for hand in hands.values() for card in hand])
    story = _Story(state)
    for seat in state.seats:
        story.tell(CardsDealt(seat, 5, tuple(hands[seat])))
    _start_first_round(story)
    return story.told()


def _act(state: HandState, command: Act) -> Step:
    position = state.to_act
    if position < 0 or state.seats[position] != command.seat:
        raise _not_now(state, command.seat)
    if state.stage == "draw":
        raise Refusal("WRONG_STAGE", stage=state.stage)
    return _after_action(state, betting.act(state, position, command.kind, command.to, False))


def _after_action(state: HandState, acted: Acted) -> Step:
    if acted.next_seat is not None:
        return (acted,), evolve(state, acted)
    story = _Story(state)
    story.tell(acted)
    _end_round(story)
    return story.told()


def _not_now(state: HandState, seat: int) -> Exception:
    """Why a seat that has not the turn may not act or discard."""
    if seat not in state.seats:
        return CommandInvalid(f"seat {seat} is not in this hand")
    to_act = state.seat_at(state.to_act)
    return Refusal("NOT_YOUR_TURN", tried=seat, to_act=to_act if to_act is not None else "nobody")


def _discard(state: HandState, command: Discard) -> Step:
    position = state.to_act
    if state.stage == "draw" and command.seat in state.seats:
        own = state.position(command.seat)
        if state.drawn[own] >= 0:
            raise Refusal("ALREADY_DREW", tried=command.seat)
    if position < 0 or state.seats[position] != command.seat:
        raise _not_now(state, command.seat)
    if state.stage != "draw":
        raise Refusal("WRONG_STAGE", stage=state.stage)
    return _discarded(state, position, command.cards, False)


def _discarded(state: HandState, position: int, cards: tuple[int, ...], by_clock: bool) -> Step:
    discarded = drawing.discard(state, position, tuple(cards), by_clock)
    if cards or discarded.next_seat is not None:
        return (discarded,), evolve(state, discarded)
    story = _Story(state)
    story.tell(discarded)
    _end_draw(story)
    return story.told()


def _clock_ran_out(state: HandState, command: ClockRanOut) -> Step:
    position = state.to_act
    if position < 0 or state.seats[position] != command.seat:
        raise _not_now(state, command.seat)
    if state.stage == "draw":
        return _discarded(state, position, (), True)
    kind = "check" if betting.may_check(state, position) else "fold"
    return _after_action(state, betting.act(state, position, kind, 0, True))  # type: ignore[arg-type]


def _deliver_exchange(state: HandState, command: DeliverExchange) -> Step:
    position = state.exchange
    if position < 0 or state.seats[position] != command.seat:
        raise CommandInvalid(f"no exchange of seat {command.seat} is due")
    due = len(state.discards[position]) - (position == state.late)
    cards = tuple(command.cards)
    if len(cards) != due:
        raise CommandInvalid(f"{due} cards are due to seat {command.seat}, not {len(cards)}")
    _check_fresh(state, cards, position)
    after = state.seat_at(drawing.following(state, position))
    drawn = CardsDrawn(command.seat, due, False, cards, after)
    if after is not None and not command.reshuffled:
        return (drawn,), evolve(state, drawn)
    story = _Story(state)
    if command.reshuffled:
        story.tell(DeckReshuffled(state.reshuffles + 1))
    story.tell(drawn)
    if after is None:
        _end_draw(story)
    return story.told()


def _deliver_late_card(state: HandState, command: DeliverLateCard) -> Step:
    position = state.late
    if state.stage != "draw" or state.to_act >= 0 or state.exchange >= 0 or position < 0:
        raise CommandInvalid("no late card is due")
    if state.seats[position] != command.seat:
        raise CommandInvalid(f"no late card is due to seat {command.seat}")
    if command.burned != drawing.burns_before_late_card(state):
        raise CommandInvalid("a card is burned if, and only if, the four-card draw was the last")
    _check_fresh(state, (command.card,), position)
    story = _Story(state)
    if command.reshuffled:
        story.tell(DeckReshuffled(state.reshuffles + 1))
    if command.burned:
        story.tell(CardBurned())
    story.tell(CardsDrawn(command.seat, 1, True, (command.card,), None))
    _start_second_round(story)
    return story.told()


def _check_fresh(state: HandState, cards: Collection[int], position: int = -1) -> None:
    """The deck never gives a card twice, one that a live hand holds, or one that its receiver discarded."""
    fresh = set(cards)
    if len(fresh) != len(cards) or not fresh <= _DECK:
        raise CommandInvalid("the cards delivered are not distinct cards of the deck")
    live = state.live
    for other, hand in enumerate(state.hands):
        if hand and live >> other & 1 and not fresh.isdisjoint(hand):
            raise CommandInvalid("a card delivered is in a live hand")
    if position >= 0 and not fresh.isdisjoint(state.discards[position]):
        raise CommandInvalid("a card delivered was discarded by its receiver")


def _show(state: HandState, command: Show) -> Step:
    position = state.position(command.seat)
    if position < 0:
        raise CommandInvalid(f"seat {command.seat} is not in this hand")
    shown = state.outcome in (None, "passed_out") or position in state.shown
    if shown or not state.live >> position & 1:
        raise Refusal("WRONG_STAGE", stage=state.stage)
    hand = state.hands[position]
    story = _Story(state)
    story.tell(HandShown(command.seat, hand, describe(rank(hand)), True))
    return story.told()


def _start_first_round(story: _Story) -> None:
    state = story.state
    rulebook, size = state.rulebook, len(state.seats)
    blinds = rulebook.first_round == "blinds"
    # Positions 0 and 1 post the blinds; heads-up the button, position 1, posts the small one and acts first.
    start = (2 if size > 2 else 1) if blinds else 0
    level = rulebook.big_blind
    first = betting.next_to_act(start, state.live, 0, state.stacks, state.put, level)
    least = betting.least_bet(rulebook, False)
    story.tell(StageStarted("first_round", state.seat_at(first), level, least, int(blinds)))
    if first < 0:
        _end_round(story)


def _start_second_round(story: _Story) -> None:
    state = story.state
    first = betting.next_to_act(0, state.live, 0, state.stacks, state.put, 0)
    least = betting.least_bet(state.rulebook, True)
    story.tell(StageStarted("second_round", state.seat_at(first), 0, least, 0))
    if first < 0:
        _end_round(story)


def _end_round(story: _Story) -> None:
    """Give back what nobody called, collect the bets, and go on to the draw, the showdown or the end."""
    stage, checked = story.state.stage, _checked_through(story.state)
    owner, excess = uncalled(story.state)
    if excess:
        story.tell(UncalledReturned(story.state.seats[owner], excess))
    story.tell(_collected(story.state, excess, owner))
    state = story.state
    if not state.live & (state.live - 1):
        story.tell(*uncontested(state))
    elif checked:
        story.tell(*passed_out(state))
    elif stage == "first_round":
        story.tell(StageStarted("draw", state.seat_at(drawing.next_to_draw(state))))
    else:
        story.tell(*showdown(state))


def _checked_through(state: HandState) -> bool:
    """True if all checked where that passes the hand out: every live seat is able to bet, and nobody did."""
    rulebook = state.rulebook
    if state.level or any(not state.stacks[position] for position in state.live_positions()):
        return False
    if state.stage == "first_round":
        return rulebook.first_round == "check_or_open"
    return rulebook.second_round_all_checked == "pass_out"


def _collected(state: HandState, excess: int, owner: int) -> BetsCollected:
    seats = state.seats
    if state.stage == "second_round":
        bets = {seat: chips for seat, chips in zip(seats, state.put, strict=True) if chips}
        return BetsCollected(state.stage, bets, {}, state.pot)
    # `total` has what came back taken off already; below what was forced, a forced bet came back in part.
    beyond = [chips - forced for chips, forced in zip(state.total, state.forced, strict=True)]
    bets = {seat: chips for seat, chips in zip(seats, beyond, strict=True) if chips > 0}
    forced_returned = {seats[owner]: -beyond[owner]} if excess and beyond[owner] < 0 else {}
    return BetsCollected(state.stage, bets, forced_returned, state.pot)


def _end_draw(story: _Story) -> None:
    if story.state.late < 0:
        _start_second_round(story)


_STEPS: dict[type, Callable[[HandState, Any], Step]] = {
    Begin: _begin,
    DeliverDeal: _deliver_deal,
    Act: _act,
    Discard: _discard,
    ClockRanOut: _clock_ran_out,
    DeliverExchange: _deliver_exchange,
    DeliverLateCard: _deliver_late_card,
    Show: _show,
}
