"""All of a hand, as one value.

Inside the engine a seat is a *position*: 0 is the first seat left of the button, the last is the button (or, where
the button's seat is not dealt in, the last before it). Positions count clockwise, so deal, draw and showdown order
are all plain counting. Sets of positions are bit sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from services.rules.events import Outcome, Stage
from services.rules.rulebook import Rulebook

T = TypeVar("T")


class PotPaid(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A pot after it was paid; `winners` seat -> chips. See `events.PotAwarded`."""

    amount: int
    winners: dict[int, int]
    rake: int
    carried: int


class HandState(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One hand between two events. Tuples hold one entry a position; amounts are minor units.

    rulebook      the options, without texts
    seats         the table's seat numbers by position
    button        the button's seat number
    auto_muck     bit set: who mucks a lost hand at showdown
    carry         chips carried in; they are part of the main pot
    posts         live posts of newcomers, due with the forced bets
    dead_posts    dead posts, likewise
    stage         where the hand is
    stacks        chips behind
    put           chips of this round (live forced bets included)
    total         chips of the whole hand, antes included, dead posts not, returned ones taken off
    forced        what of `total` was forced
    dead          dead posts paid: main pot, whoever wins it
    live          bit set: dealt in and not folded
    closed        bit set: has acted since the last full bet
    barred        bit set: missed the draw clock and may not bet or raise
    level         what a live seat must have put in to stay
    least_raise   least addition of a raise (largest full bet or raise of this round), or least bet
    full_level    the level after the last full bet; short all-ins are counted from it
    bets          full bets of this round, the big blind counted
    to_act        position whose turn it is, or -1
    aggressor     position of the last bet or raise of the second round, or -1
    hands         cards held
    discards      cards discarded; no position ever gets one of its own back
    drawn         cards asked for in the draw, -1 before that
    exchange      position that waits for cards from the deck, or -1
    late          position whose fourth card is due, or -1
    reshuffles    how often the deck was shuffled again
    burned        cards burned
    returned      uncalled chips given back
    shown         positions in the order they showed
    mucked        positions that mucked at showdown
    pots          pots paid so far, main pot first
    rake          rake taken so far
    carry_out     chips that stay at the table for the next hand
    outcome       how the hand ended, None before
    next_button   seat number of the next hand's button, 0 before
    """

    rulebook: Rulebook
    seats: tuple[int, ...]
    button: int
    auto_muck: int
    carry: int
    posts: tuple[int, ...]
    dead_posts: tuple[int, ...]
    stacks: tuple[int, ...]
    put: tuple[int, ...]
    total: tuple[int, ...]
    forced: tuple[int, ...]
    live: int
    hands: tuple[tuple[int, ...], ...]
    discards: tuple[tuple[int, ...], ...]
    drawn: tuple[int, ...]
    returned: tuple[int, ...]
    stage: Stage = "forced_bets"
    dead: int = 0
    closed: int = 0
    barred: int = 0
    level: int = 0
    least_raise: int = 0
    full_level: int = 0
    bets: int = 0
    to_act: int = -1
    aggressor: int = -1
    exchange: int = -1
    late: int = -1
    reshuffles: int = 0
    burned: int = 0
    shown: tuple[int, ...] = ()
    mucked: tuple[int, ...] = ()
    pots: tuple[PotPaid, ...] = ()
    rake: int = 0
    carry_out: int = 0
    outcome: Outcome | None = None
    next_button: int = 0

    @property
    def pot(self) -> int:
        """All chips bet so far, of this round too, the carry included."""
        return sum(self.total) + self.dead + self.carry

    def position(self, seat: int) -> int:
        """The position of a seat number, -1 if it is not dealt in."""
        return self.seats.index(seat) if seat in self.seats else -1

    def seat_at(self, position: int) -> int | None:
        """The seat number at a position, None for -1."""
        return self.seats[position] if position >= 0 else None

    def live_positions(self) -> list[int]:
        """Live positions clockwise from the button's left."""
        live = self.live
        return [position for position in range(len(self.seats)) if live >> position & 1]

    def folded_seats(self) -> tuple[int, ...]:
        """Seat numbers that folded."""
        live, seats = self.live, self.seats
        if live == (1 << len(seats)) - 1:
            return ()
        return tuple([seat for position, seat in enumerate(seats) if not live >> position & 1])


def with_entry(entries: tuple[T, ...], position: int, value: T) -> tuple[T, ...]:
    """The tuple with one entry replaced."""
    changed = list(entries)
    changed[position] = value
    return tuple(changed)


def bits(positions: int) -> Iterator[int]:
    """The positions in a bit set, ascending."""
    position = 0
    while positions:
        if positions & 1:
            yield position
        positions >>= 1
        position += 1
