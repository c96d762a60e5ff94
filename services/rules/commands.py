"""What the engine can be told. A command is an intent or a delivery; `hand.decide` answers with events or refuses."""

from __future__ import annotations

from typing import Literal

import msgspec

ActionKind = Literal["fold", "check", "call", "bet", "raise"]


class Command(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Base of all commands, so that they serialise as one tagged union."""


class Begin(Command, frozen=True, gc=False):
    """Post the forced bets: antes from all, then the blinds and what newcomers post (RULES 3.2)."""


class DeliverDeal(Command, frozen=True, gc=False):
    """Five cards for each seat, from the deck service."""

    hands: dict[int, tuple[int, ...]]


class Act(Command, frozen=True, gc=False):
    """A betting action. `to` is the level that the seat's own chips of this round reach; only for a bet or raise."""

    seat: int
    kind: ActionKind
    to: int = 0


class Discard(Command, frozen=True, gc=False):
    """A seat names the cards that it discards; none is standing pat."""

    seat: int
    cards: tuple[int, ...] = ()


class DeliverExchange(Command, frozen=True, gc=False):
    """The cards that a seat gets for its discards; `reshuffled` if the deck was shuffled again on the way."""

    seat: int
    cards: tuple[int, ...]
    reshuffled: bool = False


class DeliverLateCard(Command, frozen=True, gc=False):
    """The fourth card of a four-card draw; `burned` if a card was burned before it."""

    seat: int
    card: int
    burned: bool = False
    reshuffled: bool = False


class ClockRanOut(Command, frozen=True, gc=False):
    """The clock of the seat whose turn it is ran out: check if free, else fold; stand pat in the draw."""

    seat: int


class Show(Command, frozen=True, gc=False):
    """After the hand, a seat that mucked or needed not show, shows its cards."""

    seat: int


AnyCommand = Begin | DeliverDeal | Act | Discard | DeliverExchange | DeliverLateCard | ClockRanOut | Show
