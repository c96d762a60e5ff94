"""From the rules' events to what a table tells: public, and private to the seat whose cards they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from fivedraw.deck.v1 import deck_service_pb2
from fivedraw.table.v1 import event_pb2, table_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from services.rules import events as rules
from services.rules.hand import evolve
from services.rules.ranking import hand_name
from services.rules.state import HandState
from services.table import words
from services.table.draft import Draft
from services.table.state import Hand, SeatChips, Uncollected

ROUND: Final = {"first_round": 1, "second_round": 2}


class BrokenHandError(RuntimeError):
    """The hand contradicts itself or the ledger: it must stop and be looked at."""


class Reshuffled(NamedTuple):
    """What the deck said of a reshuffle."""

    number: int
    cards: int
    root: bytes
    dealt_before: int


def reshuffled(told: deck_service_pb2.Reshuffle) -> Reshuffled:
    """The deck's own words of a reshuffle."""
    return Reshuffled(told.number, told.cards, told.root, told.dealt_before)


def narrate(draft: Draft, events: Iterable[rules.AnyEvent], turn: int = 0, shuffle: Reshuffled | None = None) -> int:
    """Evolves the hand by these events and tells each; returns the sequence of the first one told.

    `turn` is the turn that caused them (0: none), `shuffle` the deck's words of a reshuffle among them.
    """
    told = list(events)
    first = draft.state.sequence + 1
    dealt = [event for event in told if isinstance(event, rules.CardsDealt)]
    for event in told:
        hand = draft.state.hand
        if hand is None or hand.engine is None:
            raise BrokenHandError("events of a hand that is not there")
        draft.change_hand(engine=evolve(hand.engine, event))
        if not isinstance(event, rules.CardsDealt):
            _tell(draft, event, turn, shuffle)
        elif event is dealt[-1]:
            _tell_deal(draft, dealt)
    return first


def engine_of(draft: Draft) -> HandState:
    """The rules' state of the hand being played. Raises `BrokenHandError` if there is none."""
    hand = draft.state.hand
    if hand is None or hand.engine is None:
        raise BrokenHandError("there is no hand being played")
    return hand.engine


def chips(hand: Hand, amounts: dict[int, int], code: int) -> tuple[SeatChips, ...]:
    """Chips by sitting, of those seats that have any."""
    return tuple(SeatChips(hand.sittings[seat], amount, code) for seat, amount in amounts.items() if amount)


def _tell_deal(draft: Draft, dealt: list[rules.CardsDealt]) -> None:
    seats = [event.seat for event in dealt]
    private = {
        event.seat: {"cards_dealt": event_pb2.CardsDealt(seats=seats, your_cards=words.cards(event.cards))}
        for event in dealt
    }
    draft.tell(private, cards_dealt=event_pb2.CardsDealt(seats=seats))


def _tell(draft: Draft, event: rules.AnyEvent, turn: int, shuffle: Reshuffled | None) -> None:
    match event:
        case rules.Acted():
            draft.tell(
                action_taken=event_pb2.ActionTaken(
                    seat=event.seat,
                    kind=words.ACTION[event.kind],
                    to_minor=event.to,
                    added_minor=event.added,
                    all_in=event.all_in,
                    by_clock=event.by_clock,
                    turn=turn,
                )
            )
        case rules.ForcedBetPosted():
            draft.tell(
                forced_bet_posted=event_pb2.ForcedBetPosted(
                    seat=event.seat,
                    kind=words.FORCED[event.kind],
                    amount_minor=event.amount,
                    all_in=event.all_in,
                )
            )
        case rules.ForcedBetsCompleted():
            pass
        case rules.StageStarted():
            draft.tell(stage_started=event_pb2.StageStarted(stage=words.STAGE[event.stage], pot_minor=_pot(draft)))
        case rules.UncalledReturned():
            draft.tell(bet_returned=event_pb2.BetReturned(seat=event.seat, amount_minor=event.amount))
        case rules.BetsCollected():
            _collected(draft, event)
        case rules.Discarded():
            _discarded(draft, event, turn)
        case rules.CardsDrawn():
            public = event_pb2.CardsDrawn(seat=event.seat, count=event.count, late=event.late)
            own = event_pb2.CardsDrawn(
                seat=event.seat, count=event.count, late=event.late, your_cards=words.cards(event.cards)
            )
            draft.tell({event.seat: {"cards_drawn": own}}, cards_drawn=public)
        case rules.DeckReshuffled():
            _reshuffled(draft, event, shuffle)
        case rules.CardBurned():
            draft.tell(card_burned=event_pb2.CardBurned())
        case rules.HandShown():
            hand = draft.state.hand
            if hand is not None:
                draft.change_hand(shown={**hand.shown, event.seat: event.cards})
            draft.tell(
                hand_shown=event_pb2.HandShown(
                    seat=event.seat,
                    cards=words.cards(event.cards),
                    hand_name=hand_name(event.cards),
                    voluntary=event.voluntary,
                )
            )
        case rules.HandMucked():
            draft.tell(hand_mucked=event_pb2.HandMucked(seat=event.seat))
        case rules.PotAwarded():
            pot = table_pb2.Pot(
                index=event.index, amount_minor=event.amount, winners=event.winners, rake_minor=event.rake
            )
            draft.tell(pot_awarded=event_pb2.PotAwarded(pot=pot))
        case rules.PassedOut():
            pass
        case rules.HandEnded():
            draft.change_hand(decided=True)
            draft.tell(
                hand_ended=event_pb2.HandEnded(
                    outcome=words.OUTCOME[event.outcome],
                    carry_minor=event.carry,
                    rake_minor=event.rake,
                    stacks_minor=event.stacks,
                )
            )
        case _:
            raise BrokenHandError(f"no words for {type(event).__name__}")


def _collected(draft: Draft, event: rules.BetsCollected) -> None:
    hand = draft.state.hand
    if hand is None:
        raise BrokenHandError("bets of a hand that is not there")
    number = ROUND[event.stage]
    bets = chips(hand, event.bets, wallet_service_pb2.TRANSFER_CODE_BET)
    returned = chips(hand, event.forced_returned, wallet_service_pb2.TRANSFER_CODE_RETURN)
    if bets or returned:
        draft.change_hand(uncollected=Uncollected(number, bets, returned))
    draft.tell(bets_collected=event_pb2.BetsCollected(round=number, pot_minor=event.pot))


def _discarded(draft: Draft, event: rules.Discarded, turn: int) -> None:
    hand = draft.state.hand
    if hand is not None and event.by_clock:
        draft.change_hand(pat_by_clock=(*hand.pat_by_clock, event.seat))
    facts: dict[str, Any] = {"seat": event.seat, "count": event.count, "by_clock": event.by_clock, "turn": turn}
    own = event_pb2.CardsDiscarded(**facts, your_discards=words.cards(event.cards))
    private = {event.seat: {"cards_discarded": own}} if event.cards else None
    draft.tell(private, cards_discarded=event_pb2.CardsDiscarded(**facts))


def _reshuffled(draft: Draft, event: rules.DeckReshuffled, shuffle: Reshuffled | None) -> None:
    if shuffle is None or shuffle.number != event.number:
        raise BrokenHandError(f"reshuffle {event.number} is not the deck's")
    draft.tell(
        deck_reshuffled=event_pb2.DeckReshuffled(
            number=shuffle.number, cards=shuffle.cards, root=shuffle.root, dealt_before=shuffle.dealt_before
        )
    )


def _pot(draft: Draft) -> int:
    hand = draft.state.hand
    return hand.engine.pot if hand is not None and hand.engine is not None else 0
