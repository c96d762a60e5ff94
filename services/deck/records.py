"""What the deck keeps: a row for each table, a row for each hand, and the two sealed parts of a hand."""

from __future__ import annotations

import enum

import msgspec

from services.deck import dealing
from services.deck.shuffling import PlayerSeed
from services.deck.values import Answer


class Stage(enum.IntEnum):
    """How far a hand's deck is. The last two are final."""

    OPENED = 1
    SHUFFLED = 2
    DEALT = 3
    CLOSED = 4
    VOID = 5

    @property
    def is_open(self) -> bool:
        """Whether steps may still be taken."""
        return self < Stage.CLOSED

    @property
    def outcome(self) -> str:
        """`closed` or `void`, as refusals say it."""
        return "void" if self is Stage.VOID else "closed"


class TableRecord(msgspec.Struct, frozen=True, gc=False):
    """A table as the deck knows it.

    epoch            the highest epoch seen
    open_hand        the hand whose deck is open, or 0
    last_hand        the highest hand that ever had a deck
    deck_number      number of the latest deck; decks of a table are numbered from 1 without a gap
    chain            head of the chain, 32 bytes
    next_commitment  SHA-256 of the next deck's seed, or empty before the first deck and after one closed in doubt
    next_seed        that seed, or empty
    fence_epoch      the epoch of the latest fence, or 0
    fence_voided     the hand that this fence closed as void, or 0
    """

    table: str
    epoch: int
    open_hand: int
    last_hand: int
    deck_number: int
    chain: bytes
    next_commitment: bytes
    next_seed: bytes
    fence_epoch: int
    fence_voided: int

    def __repr__(self) -> str:
        return f"TableRecord({self.table!r}, epoch={self.epoch}, open_hand={self.open_hand})"


class ShuffleSecret(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One committed shuffle: the whole order, 16 bytes of salt a place, the root."""

    order: bytes
    salts: bytes
    root: bytes

    def __repr__(self) -> str:
        return "ShuffleSecret(...)"


class Secret(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What changes only when cards are shuffled: the seed, the entropy that came with it, all shuffles."""

    seed: bytes
    cut: bytes = b""
    player_seeds: tuple[PlayerSeed, ...] = ()
    shuffles: tuple[ShuffleSecret, ...] = ()

    def __repr__(self) -> str:
        return "Secret(...)"


class Step(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A step that was taken: SHA-256 of what was asked, and the answer."""

    digest: bytes
    answer: Answer

    def __repr__(self) -> str:
        return "Step(...)"


class Play(msgspec.Struct, frozen=True, array_like=True):
    """What changes with every step: where the cards are, which left the deck from where, and the answers given."""

    deck: dealing.DeckState | None = None
    dealt: tuple[dealing.Dealt, ...] = ()
    steps: dict[str, Step] = {}

    def __repr__(self) -> str:
        return "Play(...)"


class HandRecord(msgspec.Struct, frozen=True):
    """One hand's deck. `key` is the hand's own key, by which `secret` and `play` are sealed at rest."""

    table: str
    hand: int
    epoch: int
    deck_number: int
    stage: Stage
    commitment: bytes
    previous_chain: bytes
    chain: bytes
    opened_ms: int
    closed_ms: int
    key: bytes
    secret: Secret
    play: Play

    def __repr__(self) -> str:
        return f"HandRecord({self.table!r}, hand={self.hand}, stage={self.stage.name})"
