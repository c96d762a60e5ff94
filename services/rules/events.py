"""What happened in a hand, in the past tense. The state follows from the events alone (`hand.evolve`).

Amounts are minor units, seats are the table's numbers. An event's cards are private to the seats that
`private_to` names until it is shown; `redact` takes them out for everybody else. No event holds a card that was not
dealt, a list of legal actions, or anything else computed from hidden cards.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from services.rules.commands import ActionKind
from services.rules.ranking import HandName

ForcedKind = Literal["ante", "small_blind", "big_blind", "post", "dead_post"]
Stage = Literal["forced_bets", "deal", "first_round", "draw", "second_round", "finished"]
Outcome = Literal["showdown", "uncontested", "passed_out"]


class Event(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Base of all events, so that they serialise as one tagged union."""


class ForcedBetPosted(Event, frozen=True, gc=False):
    """An ante, a blind or a newcomer's post. `live` chips count as the seat's bet of the first round."""

    seat: int
    kind: ForcedKind
    amount: int
    live: bool
    all_in: bool


class ForcedBetsCompleted(Event, frozen=True, gc=False):
    """All forced bets are in and the deal is due. `level` is what a live seat must have put in to stay."""

    level: int
    pot: int


class CardsDealt(Event, frozen=True, gc=False):
    """Five cards went to a seat; `cards` are private to it."""

    seat: int
    count: int
    cards: tuple[int, ...]


class StageStarted(Event, frozen=True, gc=False):
    """A round or the draw began. `seat` is first to act, None where nobody is asked.

    `level` is the bet level, `least_raise` the least that a raise adds (or a bet makes), `bets` counts towards the
    cap; all three are 0 in the draw.
    """

    stage: Stage
    seat: int | None
    level: int = 0
    least_raise: int = 0
    bets: int = 0


class Acted(Event, frozen=True, gc=False):
    """A seat acted: `added` chips, which bring its chips of this round to `to`.

    `level`, `least_raise`, `full_level` and `bets` are the round's after it; `full` is True for a bet or raise that
    opens the betting again to seats that have acted. `next_seat` is whose turn it is, None when the round is over.
    """

    seat: int
    kind: ActionKind
    added: int
    to: int
    all_in: bool
    by_clock: bool
    level: int
    least_raise: int
    full_level: int
    bets: int
    full: bool
    next_seat: int | None


class UncalledReturned(Event, frozen=True, gc=False):
    """Chips that nobody called went back to their owner at the end of a round."""

    seat: int
    amount: int


class BetsCollected(Event, frozen=True, gc=False):
    """A round's bets went into the pot, net of what was returned.

    `bets` are chips beyond forced bets, seat -> amount; `forced_returned` what of a forced bet came back, seat ->
    amount. Seats with nothing are left out. `pot` holds all chips bet so far, the carry included.
    """

    stage: Stage
    bets: dict[int, int]
    forced_returned: dict[int, int]
    pot: int


class Discarded(Event, frozen=True, gc=False):
    """A seat discarded `count` cards (0 is standing pat); which ones is private to it.

    `draw_now` of them are replaced at once, a fourth one later. `barred`: it missed the draw clock and may not bet or
    raise any more. `next_seat` is whose turn to draw it is, None while cards are awaited or when all have drawn.
    """

    seat: int
    count: int
    draw_now: int
    by_clock: bool
    barred: bool
    cards: tuple[int, ...]
    next_seat: int | None


class DeckReshuffled(Event, frozen=True, gc=False):
    """The discards became a new stub; `number` counts the reshuffles of this hand from 1."""

    number: int


class CardBurned(Event, frozen=True, gc=False):
    """One card went out of play unseen."""


class CardsDrawn(Event, frozen=True, gc=False):
    """A seat got `count` cards for its discards; they are private to it. `late` marks the fourth card of four."""

    seat: int
    count: int
    late: bool
    cards: tuple[int, ...]
    next_seat: int | None


class HandShown(Event, frozen=True, gc=False):
    """A seat showed its hand, to everybody; `voluntary` if it did so after the hand without having to."""

    seat: int
    cards: tuple[int, ...]
    name: HandName
    voluntary: bool = False


class HandMucked(Event, frozen=True, gc=False):
    """A seat that could not win or tie any more mucked at showdown."""

    seat: int


class PotAwarded(Event, frozen=True, gc=False):
    """A pot was paid: `index` 0 is the main pot, side pots are paid first.

    `amount` = sum of `winners` + `rake` + `carried` (odd chips that stay for the next pot).
    """

    index: int
    amount: int
    winners: dict[int, int]
    rake: int
    carried: int
    contested: bool


class PassedOut(Event, frozen=True, gc=False):
    """All checked: the whole pot, `carry`, stays for the next hand."""

    carry: int


class HandEnded(Event, frozen=True, gc=False):
    """The hand is over. `stacks` are all seats' chips, `carry` stays at the table, `button` is the next hand's."""

    outcome: Outcome
    stacks: dict[int, int]
    carry: int
    rake: int
    button: int


AnyEvent = (
    ForcedBetPosted
    | ForcedBetsCompleted
    | CardsDealt
    | StageStarted
    | Acted
    | UncalledReturned
    | BetsCollected
    | Discarded
    | DeckReshuffled
    | CardBurned
    | CardsDrawn
    | HandShown
    | HandMucked
    | PotAwarded
    | PassedOut
    | HandEnded
)

_WITH_PRIVATE_CARDS = (CardsDealt, Discarded, CardsDrawn)


def private_to(event: AnyEvent) -> tuple[int, ...]:
    """The seats that may see all of the event; () if everybody may."""
    return (event.seat,) if isinstance(event, _WITH_PRIVATE_CARDS) and event.cards else ()


def redact(event: AnyEvent, viewer: int | None) -> AnyEvent:
    """The event as this viewer may see it (None is a spectator): without cards that are another seat's."""
    if isinstance(event, _WITH_PRIVATE_CARDS) and event.cards and event.seat != viewer:
        return msgspec.structs.replace(event, cards=())
    return event
