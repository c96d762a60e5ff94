"""What a viewer of a closed hand may check: places opened for the cards they saw, and nothing that they did not see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.deck import shuffling
from services.deck.cards import text_of
from services.deck.commitments import SALT_BYTES, leaves, path_of
from services.deck.dealing import Dealt
from services.deck.records import HandRecord, Stage
from services.deck.values import CommittedShuffle, OpenedPlace, PassedPlace, Proof
from services.runtime.errors import Fault

SeenCard = tuple[int, int]
"""A seat and a card that the viewer saw in it."""


def proof_of(hand: HandRecord, seen: Iterable[SeenCard], loose: Iterable[int], *, with_seed: bool) -> Proof:
    """The proof for a viewer of a closed hand.

    `seen` are cards by seat: the place is opened from which that seat got that card (for a late drawer, also where
    its own discard was passed over). `loose` are cards without a seat: opened only where one seat alone ever had the
    card, since otherwise the place would tell of a deal that the viewer did not see. `with_seed` opens everything.
    Raises `Fault` INVALID_REQUEST for a card that its seat never had; it names no card.
    """
    passed = _passed_places(hand)
    if with_seed:
        wanted = {
            (number, place) for number, each in enumerate(hand.secret.shuffles) for place in range(len(each.order))
        }
    else:
        wanted = _seen_places(hand, tuple(seen), passed) | _loose_places(hand.play.dealt, set(loose))
    return Proof(
        version=shuffling.VERSION,
        table=hand.table,
        hand=hand.hand,
        deck_number=hand.deck_number,
        void=hand.stage is Stage.VOID,
        commitment=hand.commitment,
        previous_chain=hand.previous_chain,
        chain=hand.chain,
        shuffles=tuple(
            CommittedShuffle(number, each.root, len(each.order)) for number, each in enumerate(hand.secret.shuffles)
        ),
        places=tuple(_opened(hand, wanted)),
        passed=tuple(PassedPlace(number, place) for number, place in passed),
        seed=hand.secret.seed if with_seed else b"",
        cut=hand.secret.cut,
        player_seeds=hand.secret.player_seeds,
    )


def _passed_places(hand: HandRecord) -> list[tuple[int, int]]:
    """Places before the last one dealt of their shuffle that nobody got: a late drawer's own discards."""
    last: dict[int, int] = {}
    for each in hand.play.dealt:
        last[each.shuffle] = max(last.get(each.shuffle, -1), each.place)
    dealt = {(each.shuffle, each.place) for each in hand.play.dealt}
    return [
        (shuffle, place) for shuffle in sorted(last) for place in range(last[shuffle]) if (shuffle, place) not in dealt
    ]


def _seen_places(hand: HandRecord, seen: Sequence[SeenCard], passed: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    places: dict[SeenCard, tuple[int, int]] = {
        (each.seat, each.card): (each.shuffle, each.place) for each in hand.play.dealt if each.seat
    }
    strange = sum(each not in places for each in seen)
    if strange:
        raise Fault(
            "INVALID_REQUEST", f"{strange} of the cards seen were never dealt to their seat", field="seen_hands"
        )
    late = _late_seat(hand)
    own = {card for seat, card in seen if seat == late}
    opened = {places[each] for each in seen}
    return opened | {at for at in passed if hand.secret.shuffles[at[0]].order[at[1]] in own}


def _late_seat(hand: HandRecord) -> int | None:
    """The seat that drew its fourth card late: it alone got a card after others had drawn behind it."""
    deck = hand.play.deck
    if deck is None:
        return None
    for seat, discards in deck.discarded.items():
        if len(discards) == 4:
            return seat
    return None


def _loose_places(dealt: Sequence[Dealt], loose: set[int]) -> set[tuple[int, int]]:
    by_card: dict[int, list[Dealt]] = {}
    for each in dealt:
        by_card.setdefault(each.card, []).append(each)
    return {
        (found[0].shuffle, found[0].place)
        for card, found in by_card.items()
        if card in loose and len(found) == 1 and found[0].seat
    }


def _opened(hand: HandRecord, wanted: set[tuple[int, int]]) -> Iterable[OpenedPlace]:
    for number, shuffle in enumerate(hand.secret.shuffles):
        level = leaves(number, tuple(shuffle.order), shuffle.salts)
        for place, card in enumerate(shuffle.order):
            if (number, place) in wanted:
                salt = shuffle.salts[place * SALT_BYTES : (place + 1) * SALT_BYTES]
                yield OpenedPlace(number, place, text_of(card), salt, path_of(level, place))
