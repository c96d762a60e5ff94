"""What the events of a hand say, kind by kind; an event of another shape, or of a kind not known here, is a failure."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from services.deck.verification.exported import CardText, Count, Hand, Hash, Hex, SeatNumber
from services.deck.verification.report import Report

Winners = dict[Annotated[str, Meta(pattern="^[1-9]$")], Count]


class Body(msgspec.Struct, frozen=True):
    """What an event says."""


class StartingSeat(Body, frozen=True):
    """A seat at the beginning."""

    seat: SeatNumber
    player: str
    display_name: str
    stack_minor: Count


class HandStarted(Body, frozen=True):
    """A hand begins."""

    button: SeatNumber
    seats: tuple[StartingSeat, ...]
    carry_minor: Count
    deck_number: Count
    commitment: Hash
    chain: Hash
    options: dict[str, Any]


class GivenSeed(Body, frozen=True):
    """A player's own seed."""

    seat: SeatNumber
    seed: Hex


class DeckCommitted(Body, frozen=True):
    """The order is fixed."""

    root: Hash
    cut_by: SeatNumber
    cut: Hex
    player_seeds: tuple[GivenSeed, ...]


class ForcedBetPosted(Body, frozen=True):
    """An ante or a blind."""

    seat: SeatNumber
    kind: Literal["ante", "small_blind", "big_blind", "post", "dead_blind"]
    amount_minor: Count
    all_in: bool


class CardsDealt(Body, frozen=True):
    """Five cards each."""

    seats: tuple[SeatNumber, ...]
    your_cards: tuple[CardText, ...]


class StageStarted(Body, frozen=True):
    """A round or the draw begins."""

    stage: Literal["first_round", "draw", "second_round"]
    pot_minor: Count


class Turn(Body, frozen=True):
    """Whose turn it is."""

    seat: SeatNumber
    turn: Count
    to_call_minor: Count


class TurnStarted(Body, frozen=True):
    """A seat is to act."""

    turn: Turn


class ActionTaken(Body, frozen=True):
    """A seat acted."""

    seat: SeatNumber
    kind: Literal["fold", "check", "call", "bet", "raise"]
    to_minor: Count
    added_minor: Count
    all_in: bool
    by_clock: bool
    turn: Count


class BetReturned(Body, frozen=True):
    """What nobody called goes back."""

    seat: SeatNumber
    amount_minor: Count


class BetsCollected(Body, frozen=True):
    """A round's bets are in the pot."""

    round: Count
    pot_minor: Count


class CardsDiscarded(Body, frozen=True):
    """A seat gave up cards."""

    seat: SeatNumber
    count: Count
    your_discards: tuple[CardText, ...]
    by_clock: bool
    turn: Count


class CardsDrawn(Body, frozen=True):
    """A seat got cards."""

    seat: SeatNumber
    count: Count
    your_cards: tuple[CardText, ...]
    late: bool


class DeckReshuffled(Body, frozen=True):
    """Discards became a new stub."""

    number: Count
    cards: Count
    root: Hash
    dealt_before: Count


class HandShown(Body, frozen=True):
    """A hand was shown."""

    seat: SeatNumber
    cards: tuple[CardText, ...]
    voluntary: bool


class HandMucked(Body, frozen=True):
    """A hand was mucked."""

    seat: SeatNumber


class Pot(Body, frozen=True):
    """A pot and who won it."""

    index: Count
    amount_minor: Count
    winners: Winners
    rake_minor: Count


class PotAwarded(Body, frozen=True):
    """A pot was won."""

    pot: Pot


class HandEnded(Body, frozen=True):
    """The hand is decided."""

    outcome: Literal["showdown", "uncontested", "passed_out"]
    carry_minor: Count
    rake_minor: Count
    stacks_minor: Winners


class HandSettled(Body, frozen=True):
    """The money is where it belongs."""

    next_commitment: Hex


class HandVoided(Body, frozen=True):
    """The hand was undone."""

    reason: str
    stacks_minor: Winners
    carry_minor: Count
    next_commitment: Hex


KINDS: Final[dict[str, type[Body]]] = {
    "hand_started": HandStarted,
    "deck_committed": DeckCommitted,
    "forced_bet_posted": ForcedBetPosted,
    "cards_dealt": CardsDealt,
    "stage_started": StageStarted,
    "turn_started": TurnStarted,
    "action_taken": ActionTaken,
    "bet_returned": BetReturned,
    "bets_collected": BetsCollected,
    "cards_discarded": CardsDiscarded,
    "cards_drawn": CardsDrawn,
    "deck_reshuffled": DeckReshuffled,
    "card_burned": Body,
    "hand_shown": HandShown,
    "hand_mucked": HandMucked,
    "pot_awarded": PotAwarded,
    "hand_ended": HandEnded,
    "hand_settled": HandSettled,
    "hand_voided": HandVoided,
}

# What may happen at a table at any moment of a hand, and moves neither its cards nor its chips.
BESIDE: Final = frozenset(
    {
        "hidden", "hand_waiting", "seat_taken", "seat_left", "seat_changed", "stack_changed", "table_paused",
        "table_resumed", "table_closed", "table_rebuilt", "carry_refunded", "waiting_list_changed", "chat_sent",
    }
)  # fmt: skip


def bodies_of(hand: Hand, report: Report) -> list[Body] | None:
    """The events' bodies in order (`Body` for those beside the hand), or `None`, and why, where one is broken."""
    before = len(report.failed)
    bodies: list[Body] = []
    for event in hand.events:
        where = f"event {event.sequence} ({event.type})"
        if event.type not in KINDS:
            report.check(event.type in BESIDE, "events", f"{where}: this kind is not known here")
            bodies.append(Body())
            continue
        try:
            bodies.append(msgspec.convert(event.body, KINDS[event.type]))
        except msgspec.ValidationError:
            report.failed.append(f"events: {where}: it lacks what its kind needs")
    return bodies if len(report.failed) == before else None
