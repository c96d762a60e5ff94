"""What a hand waits for next. The table service turns these into clocks and calls, and the answers into commands."""

from __future__ import annotations

import msgspec


class AwaitBegin(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The command `Begin`."""


class AwaitDeal(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Five cards to each of `seats`, which stand in deal order; the answer is `DeliverDeal`."""

    seats: tuple[int, ...]


class AwaitAction(msgspec.Struct, frozen=True, gc=False, tag=True):
    """An `Act` of this seat, or `ClockRanOut`."""

    seat: int


class AwaitDiscard(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A `Discard` of this seat, or `ClockRanOut`."""

    seat: int


class AwaitExchange(msgspec.Struct, frozen=True, gc=False, tag=True):
    """`draw_now` cards for the `discards` of `seat`; the answer is `DeliverExchange`.

    `folded` are the seats whose hands are discards by now; `mixed` is the rulebook's way with a short stub.
    """

    seat: int
    discards: tuple[int, ...]
    draw_now: int
    folded: tuple[int, ...]
    mixed: bool


class AwaitLateCard(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The fourth card of `seat`, after one burned card if `burn`; the answer is `DeliverLateCard`."""

    seat: int
    burn: bool
    folded: tuple[int, ...]
    mixed: bool


class AwaitNothing(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The hand is over. Only `Show` is still answered."""


Await = AwaitBegin | AwaitDeal | AwaitAction | AwaitDiscard | AwaitExchange | AwaitLateCard | AwaitNothing
