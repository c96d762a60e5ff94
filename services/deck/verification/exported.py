"""The parts of an exported hand that a verification reads (structured JSON: bytes are hex, enums are words)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Hex = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Salt = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
CardText = Annotated[str, Meta(pattern="^[2-9TJQKA][cdhs]$")]
# What every reader can hold: beyond 53 bits, one with doubles would round.
WHOLE_MAX = 2**53 - 1
Count = Annotated[int, Meta(ge=0, le=WHOLE_MAX)]
SeatNumber = Annotated[int, Meta(ge=0, le=9)]


class Event(msgspec.Struct, frozen=True):
    """One event; `body` is read by who needs it."""

    sequence: Count
    epoch: Count
    hand: Count
    type: str
    body: dict[str, Any]
    commit_time: str


class Seat(msgspec.Struct, frozen=True):
    """One seat; lists are empty where the viewer may not see them."""

    seat: Annotated[int, Meta(ge=1, le=9)]
    player: str
    display_name: str
    stack_before_minor: Count
    stack_after_minor: Count
    dealt: tuple[CardText, ...]
    final_cards: tuple[CardText, ...]
    shown: bool
    mucked: bool
    discarded: tuple[CardText, ...]
    drawn: tuple[CardText, ...]
    timed_out: bool


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
    deck_number: Annotated[int, Meta(ge=1, le=WHOLE_MAX)]
    commitment: Hash
    chain: Hash
    previous_chain: Hash
    shuffles: tuple[Shuffle, ...]
    places: tuple[Place, ...]
    passed: tuple[Passed, ...]
    seed: Hex
    cut: Hex
    player_seeds: tuple[Entropy, ...]
    void: bool


class Options(msgspec.Struct, frozen=True):
    """The options that say what is due, where cards come from and how chips are shared; no others are needed here."""

    ante_minor: Count
    small_blind_minor: Count
    big_blind_minor: Count
    first_round: str
    second_round_all_checked: str
    max_draw: Annotated[int, Meta(ge=0, le=5)]
    single_four_card_draw: bool
    reshuffle: str
    odd_chips: str
    rake_basis_points: Annotated[int, Meta(ge=0, le=10_000)]
    rake_cap_minor: Count


class Hand(msgspec.Struct, frozen=True):
    """A finished hand as one viewer saw it."""

    name: str
    table: str
    hand: Annotated[int, Meta(ge=1, le=WHOLE_MAX)]
    epoch: Count
    options: dict[str, Any]
    start_time: str
    end_time: str
    button: SeatNumber
    seats: Annotated[tuple[Seat, ...], Meta(min_length=2)]
    events: tuple[Event, ...]
    pots: tuple[dict[str, Any], ...]
    outcome: str
    rake_minor: Count
    carry_in_minor: Count
    carry_out_minor: Count
    incomplete: bool
    your_seat: SeatNumber
    void_reason: str
    proof: Proof | None = None

    def __post_init__(self) -> None:
        """Raises `msgspec.ValidationError` where an option that is needed is missing."""
        msgspec.convert(self.options, Options)

    @property
    def rules(self) -> Options:
        """The options that a verification needs."""
        return msgspec.convert(self.options, Options)


DECODER = msgspec.json.Decoder(Hand)
