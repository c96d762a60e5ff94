"""How cards leave the deck: the deal, the exchange, the late fourth card, the reshuffle (RULES 3.3, 3.5, 11).

Everything here is a pure function of a `DeckState`. Cards are whole numbers 0..51 in the order
2c 2d 2h 2s 3c ... As. Randomness comes in as a `Shuffler`; nothing is read or kept elsewhere.

Where a card comes from is said with it: the number of the shuffle (0 is the opening one, k the k-th
reshuffle) and the place in that shuffle's order, so that each card can be checked against what was
committed before it was dealt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

DECK_SIZE = 52
HAND_SIZE = 5
FOUR_CARD_DRAW = 4

Shuffler = Callable[[tuple[int, ...], int], Sequence[int]]
"""Takes the cards in ascending order and the shuffle's number (1 for the first reshuffle); gives their new order."""


class DealingRefused(ValueError):
    """A call that the state of the deck does not allow; the text says what was asked and why not, and names no card."""


class Dealt(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One card that left the deck, and the place it came from. Seat 0 is nobody's: a burned card."""

    seat: int
    card: int
    shuffle: int
    place: int


class Reshuffle(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A new stub: its number within the hand (from 1) and its cards in the order they will be dealt."""

    number: int
    order: tuple[int, ...]


class Dealing(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What one call dealt, in order; `reshuffles` are those that happened on the way (at most one is ever needed)."""

    cards: tuple[Dealt, ...]
    burned: tuple[Dealt, ...] = ()
    reshuffles: tuple[Reshuffle, ...] = ()

    def of(self, seat: int) -> tuple[int, ...]:
        """The cards that `seat` got, in order."""
        return tuple(dealt.card for dealt in self.cards if dealt.seat == seat)


class DeckState(msgspec.Struct, frozen=True, gc=False):
    """Where each of the 52 cards of one hand is.

    order      cards of the current shuffle, dealt ones included
    cursor     place in `order` of the next card
    shuffle    number of the shuffle that `order` is; also how many reshuffles there were
    hands      live seat -> the cards it holds
    pile       seat -> its discards, or its folded hand, that have not been shuffled in again
    discarded  seat -> every card that it discarded in this hand; none of them ever comes back to it
    folded     seats whose hands went to the pile
    burned     cards out of play for the rest of the hand
    aside      a late drawer's own discards that were left of a stub, or passed over in it
    late       the seat whose fourth card is still due, or None
    """

    order: tuple[int, ...]
    cursor: int = 0
    shuffle: int = 0
    hands: dict[int, tuple[int, ...]] = {}
    pile: dict[int, tuple[int, ...]] = {}
    discarded: dict[int, tuple[int, ...]] = {}
    folded: tuple[int, ...] = ()
    burned: tuple[int, ...] = ()
    aside: tuple[int, ...] = ()
    late: int | None = None

    @property
    def stub(self) -> tuple[int, ...]:
        """The cards not dealt yet, the next one first."""
        return self.order[self.cursor :]


def open_deck(order: Sequence[int]) -> DeckState:
    """A fresh deck in the order it was shuffled. Refused unless these are the 52."""
    if sorted(order) != list(range(DECK_SIZE)):
        raise DealingRefused(f"a deck has each of the {DECK_SIZE} cards once; this one has {len(order)} cards")
    return DeckState(order=tuple(order))


def deal(state: DeckState, seats: Sequence[int]) -> tuple[DeckState, Dealing]:
    """Five cards to each seat, one at a time, in the order of `seats` (clockwise from the button's left)."""
    if state.cursor or state.hands or state.shuffle:
        raise DealingRefused("this deck was dealt already")
    if len(set(seats)) != len(seats) or not seats:
        raise DealingRefused(f"the seats to deal to must be distinct, and at least one: {list(seats)}")
    needed = HAND_SIZE * len(seats)
    if needed > len(state.order):
        raise DealingRefused(f"{len(seats)} seats need {needed} cards")
    cards = tuple(Dealt(seats[place % len(seats)], state.order[place], state.shuffle, place) for place in range(needed))
    dealing = Dealing(cards)
    hands = {seat: dealing.of(seat) for seat in seats}
    return msgspec.structs.replace(state, cursor=needed, hands=hands), dealing


def exchange(
    state: DeckState,
    seat: int,
    discards: Sequence[int],
    draw_now: int,
    *,
    shuffler: Shuffler,
    folded: Sequence[int] = (),
    mixed: bool = False,
) -> tuple[DeckState, Dealing]:
    """Take `discards` from `seat` and give it `draw_now` cards.

    `draw_now` is the number of discards, or 3 of 4 when the seat's fourth card comes late. `folded` are all seats
    that folded so far (those told before may be told again); their hands join the discards. With `mixed` a stub that
    is too short is shuffled together with the discards at once, otherwise it is dealt first.
    """
    state = fold(state, folded)
    held = state.hands.get(seat)
    if held is None:
        raise DealingRefused(f"seat {seat} holds no live hand")
    if seat in state.discarded:
        raise DealingRefused(f"seat {seat} drew already")
    if len(set(discards)) != len(discards) or not set(discards) <= set(held):
        raise DealingRefused(f"seat {seat} does not hold the {len(discards)} cards it discards")
    if not may_draw(len(discards), draw_now):
        raise DealingRefused(f"{len(discards)} discards do not allow {draw_now} cards now")
    short = len(discards) - draw_now
    if short and state.late is not None:
        raise DealingRefused(f"seat {state.late} has a late card due already")
    kept = tuple(card for card in held if card not in discards)
    state = msgspec.structs.replace(
        state,
        hands={**state.hands, seat: kept},
        discarded={**state.discarded, seat: tuple(discards)},
        pile={**state.pile, seat: tuple(discards)} if discards else state.pile,
        late=seat if short else state.late,
    )
    state, drawn, reshuffles = _take(state, seat, draw_now, mixed, shuffler)
    state = _give(state, seat, drawn)
    return state, Dealing(drawn, (), reshuffles)


def may_draw(discards: int, draw_now: int) -> bool:
    """Whether so many cards may follow so many discards: as many, or 3 of a four-card draw."""
    return draw_now == discards or (discards == FOUR_CARD_DRAW and draw_now == FOUR_CARD_DRAW - 1)


def late_card(
    state: DeckState,
    seat: int,
    *,
    burn: bool,
    shuffler: Shuffler,
    folded: Sequence[int] = (),
    mixed: bool = False,
) -> tuple[DeckState, Dealing]:
    """The fourth card of the seat that drew four; before it, with `burn`, one card out of play.

    The seat's own discards, which a reshuffle for others may have put into the stub, are passed over and stay there.
    """
    state = fold(state, folded)
    if state.late != seat:
        raise DealingRefused(f"no late card is due to seat {seat}")
    # A burned card is nobody's discard, so a reshuffle between it and the late card cannot bring it back.
    state, taken, reshuffles = _take(state, seat, 1 + burn, mixed, shuffler)
    out = tuple(Dealt(0, dealt.card, dealt.shuffle, dealt.place) for dealt in taken[:-1])
    burned = state.burned + tuple(dealt.card for dealt in out)
    state = msgspec.structs.replace(_give(state, seat, taken[-1:]), burned=burned, late=None)
    return state, Dealing(taken[-1:], out, reshuffles)


def fold(state: DeckState, seats: Sequence[int]) -> DeckState:
    """Put the hands of these seats to the discards; a seat that folded before changes nothing."""
    fresh = [seat for seat in seats if seat not in state.folded]
    if not fresh:
        return state
    unknown = [seat for seat in fresh if seat not in state.hands]
    if unknown:
        raise DealingRefused(f"seats {unknown} hold no hand to fold")
    hands, pile = dict(state.hands), dict(state.pile)
    for seat in fresh:
        pile[seat] = pile.get(seat, ()) + hands.pop(seat)
    return msgspec.structs.replace(state, hands=hands, pile=pile, folded=state.folded + tuple(fresh))


def check(state: DeckState) -> None:
    """Raise `DealingRefused` unless each of the 52 cards is in exactly one place."""
    places = [*state.stub, *state.burned, *state.aside]
    for cards in (*state.hands.values(), *state.pile.values()):
        places.extend(cards)
    if sorted(places) != list(range(DECK_SIZE)):
        raise DealingRefused(f"{len(places)} cards, {len(set(places))} of them distinct, are in play instead of 52")


def _give(state: DeckState, seat: int, drawn: tuple[Dealt, ...]) -> DeckState:
    if not drawn:
        return state
    cards = tuple(dealt.card for dealt in drawn)
    return msgspec.structs.replace(state, hands={**state.hands, seat: state.hands[seat] + cards})


def _take(
    state: DeckState, seat: int, count: int, mixed: bool, shuffler: Shuffler
) -> tuple[DeckState, tuple[Dealt, ...], tuple[Reshuffle, ...]]:
    """The next `count` cards that are not `seat`'s own discards, with a reshuffle if the stub has too few."""
    own = state.discarded.get(seat, ())
    usable = sum(card not in own for card in state.stub)
    if usable >= count:
        state, dealt = _from_stub(state, seat, count, own)
        return state, dealt, ()
    first: tuple[Dealt, ...] = ()
    if not mixed:
        state, first = _from_stub(state, seat, usable, own)
    state, reshuffle = _reshuffle(state, seat, first, mixed, shuffler)
    if sum(card not in own for card in state.stub) < count - len(first):
        raise DealingRefused(f"the deck has no {count} cards for seat {seat}")
    state, rest = _from_stub(state, seat, count - len(first), own)
    return state, first + rest, (reshuffle,)


def _from_stub(state: DeckState, seat: int, count: int, own: tuple[int, ...]) -> tuple[DeckState, tuple[Dealt, ...]]:
    cursor = state.cursor
    dealt: list[Dealt] = []
    passed: list[int] = []
    while len(dealt) < count:
        card = state.order[cursor]
        if card in own:
            passed.append(card)
        else:
            dealt.append(Dealt(seat, card, state.shuffle, cursor))
        cursor += 1
    return msgspec.structs.replace(state, cursor=cursor, aside=state.aside + tuple(passed)), tuple(dealt)


def _reshuffle(
    state: DeckState, seat: int, in_hand: tuple[Dealt, ...], mixed: bool, shuffler: Shuffler
) -> tuple[DeckState, Reshuffle]:
    """A new stub from every other seat's discards and the folded hands; with `mixed`, from the old stub too."""
    pool = [card for owner, cards in state.pile.items() if owner != seat for card in cards]
    aside = state.aside
    if mixed:
        pool += state.stub
    else:
        # All that stub-first leaves of a stub is the drawer's own discards.
        aside += state.stub
    pool.sort()
    number = state.shuffle + 1
    order = tuple(shuffler(tuple(pool), number))
    if sorted(order) != pool:
        raise DealingRefused(f"reshuffle {number} does not hold the {len(pool)} cards it was given")
    own_pile = {seat: state.pile[seat]} if seat in state.pile else {}
    state = msgspec.structs.replace(state, order=order, cursor=0, shuffle=number, pile=own_pile, aside=aside)
    return state, Reshuffle(number, order)
