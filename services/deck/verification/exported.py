"""The parts of an exported hand that a verification reads (structured JSON: bytes are hex, enums are words)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Hex = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Salt = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
CardText = Annotated[str, Meta(pattern="^[2-9TJQKA][cdhs]$")]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
SeatNumber = Annotated[int, Meta(ge=0, le=9)]


class Event(msgspec.Struct, frozen=True):
    """One event; `body` is read by who needs it."""

    sequence: Count
    epoch: Count
    hand: Count
    type: str
    body: dict[str, Any]


class Seat(msgspec.Struct, frozen=True):
    """One seat; lists are empty where the viewer may not see them."""

    seat: SeatNumber
    stack_before_minor: Count
    dealt: tuple[CardText, ...] = ()
    final_cards: tuple[CardText, ...] = ()
    discarded: tuple[CardText, ...] = ()
    drawn: tuple[CardText, ...] = ()


class Shuffle(msgspec.Struct, frozen=True):
    """One committed shuffle."""

    shuffle: Count
    root: Hash
    cards: Annotated[int, Meta(ge=1, le=52)]


class Place(msgspec.Struct, frozen=True):
    """One opened place."""

    shuffle: Count
    place: Count
    card: CardText
    salt: Salt
    path: tuple[Hash, ...]


class Passed(msgspec.Struct, frozen=True):
    """One place that was passed over."""

    shuffle: Count
    place: Count


class Entropy(msgspec.Struct, frozen=True):
    """One player's seed."""

    seat: SeatNumber
    seed: Hex


class Proof(msgspec.Struct, frozen=True):
    """The deck's proof."""

    version: int
    deck_number: Count
    commitment: Hash
    chain: Hash
    previous_chain: Hash
    shuffles: tuple[Shuffle, ...]
    places: tuple[Place, ...]
    passed: tuple[Passed, ...] = ()
    seed: Hex = ""
    cut: Hex = ""
    player_seeds: tuple[Entropy, ...] = ()
    void: bool = False


class Options(msgspec.Struct, frozen=True):
    """The one option that says where cards come from."""

    reshuffle: str = "stub_first"


class Hand(msgspec.Struct, frozen=True):
    """A finished hand as one viewer saw it."""

    table: str
    hand: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    epoch: Count
    button: SeatNumber
    seats: tuple[Seat, ...]
    events: tuple[Event, ...]
    outcome: str
    options: Options = Options()
    your_seat: SeatNumber = 0
    carry_in_minor: Count = 0
    carry_out_minor: Count = 0
    rake_minor: Count = 0
    # None where the file does not tell them.
    pots: tuple[dict[str, Any], ...] | None = None
    proof: Proof | None = None


DECODER = msgspec.json.Decoder(Hand)
