"""What the deck is asked and what it answers, as frozen values. Those that hold cards or seeds do not print them."""

from __future__ import annotations

import enum

import msgspec

from services.deck.shuffling import PlayerSeed


class HandKey(msgspec.Struct, frozen=True, gc=False):
    """Names one hand: `tables/{table}`, the table's epoch, the hand's number."""

    table: str
    epoch: int
    hand: int


class ReshuffleRule(enum.IntEnum):
    """What to do when the stub runs short (RULES 3.5)."""

    STUB_FIRST = 1
    MIXED = 2


class _Covered(msgspec.Struct, frozen=True, gc=False):
    """A value whose text shows its kind only, so that no log or traceback can show what it holds."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class SeatCards(_Covered, frozen=True, gc=False):
    """Cards of one seat, in the order dealt, two characters each."""

    seat: int
    cards: tuple[str, ...]


class Opened(msgspec.Struct, frozen=True, gc=False, tag="opened"):
    """An open deck: its number in the table's chain, the seed's commitment and the chain's head (32 bytes each)."""

    deck_number: int
    commitment: bytes
    chain: bytes


class Frozen(msgspec.Struct, frozen=True, gc=False, tag="frozen"):
    """A shuffled deck: the Merkle root over its 52 committed places."""

    root: bytes


class Dealt(_Covered, frozen=True, gc=False, tag="dealt"):
    """The deal: one entry a seat, in the order asked."""

    hands: tuple[SeatCards, ...]


class Reshuffled(msgspec.Struct, frozen=True, gc=False):
    """A reshuffle: its number in the hand from 1, the new root, how many cards, how many of this call came before."""

    number: int
    root: bytes
    cards: int
    dealt_before: int


class Exchanged(_Covered, frozen=True, gc=False, tag="exchanged"):
    """New cards in the order dealt, and the reshuffle they needed, if any."""

    cards: tuple[str, ...]
    reshuffle: Reshuffled | None


class LateDealt(_Covered, frozen=True, gc=False, tag="late"):
    """The fourth card of a four-card draw; whether one was burned; the reshuffle they needed, if any."""

    card: str
    burned: bool
    reshuffle: Reshuffled | None


class Closed(msgspec.Struct, frozen=True, gc=False, tag="closed"):
    """A closed deck, and the commitment to the table's next seed: 32 bytes, or none while the deck is unhealthy."""

    next_commitment: bytes


class Fenced(msgspec.Struct, frozen=True, gc=False):
    """A fenced table: the hand whose deck this fence closed as void, or 0; the commitment to the next seed."""

    voided_hand: int
    next_commitment: bytes


Answer = Opened | Frozen | Dealt | Exchanged | LateDealt | Closed


class CommittedShuffle(msgspec.Struct, frozen=True, gc=False):
    """One committed shuffle of a hand: 0 is the opening one; its root and its size."""

    shuffle: int
    root: bytes
    cards: int


class OpenedPlace(_Covered, frozen=True, gc=False):
    """One place of a committed order, opened: the card, its 16-byte salt, the path from the leaf to the root."""

    shuffle: int
    place: int
    card: str
    salt: bytes
    path: tuple[bytes, ...]


class PassedPlace(msgspec.Struct, frozen=True, gc=False):
    """A place that held a late drawer's own discard and was passed over."""

    shuffle: int
    place: int


class Proof(_Covered, frozen=True, gc=False):
    """What one viewer may check of a closed hand. `seed` is empty unless it was asked for and due."""

    version: int
    table: str
    hand: int
    deck_number: int
    void: bool
    commitment: bytes
    previous_chain: bytes
    chain: bytes
    shuffles: tuple[CommittedShuffle, ...]
    places: tuple[OpenedPlace, ...]
    passed: tuple[PassedPlace, ...]
    seed: bytes
    cut: bytes
    player_seeds: tuple[PlayerSeed, ...]


class RngHealth(msgspec.Struct, frozen=True, gc=False):
    """Health of the randomness of this process; `last_test_ms` is the time of the last test of the source."""

    healthy: bool
    fault: str
    shuffles: int
    reseeds: int
    last_test_ms: int
