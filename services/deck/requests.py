"""The steps that the deck can be asked for, checked in shape before they wait for their transaction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final

import msgspec

from services.deck import cards
from services.deck.shuffling import PLAYER_ENTROPY_BYTES_MAX, PlayerSeed
from services.deck.values import HandKey, ReshuffleRule
from services.runtime.errors import Fault

INT64_MAX: Final = 2**63 - 1
STEP_ID_CHARACTERS_MAX: Final = 128
SEAT_MAX: Final = 9
DEAL_SEATS_MIN: Final = 2

_TABLE_NAME: Final = re.compile(r"tables/[A-Za-z0-9][A-Za-z0-9._~-]{0,63}")
_STEP_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_PACK: Final = msgspec.msgpack.Encoder().encode


class _Step(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A step of one hand. `digest` tells whether two requests with one id ask the same."""

    key: HandKey
    step_id: str

    def digest(self) -> bytes:
        """SHA-256 of what is asked, without the epoch: a table's new owner may repeat its predecessor's step."""
        key = self.key
        content = msgspec.structs.replace(self, key=HandKey(key.table, 0, key.hand), step_id="")
        return sha256(_PACK(content)).digest()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r}, step_id={self.step_id!r})"


class OpenDeck(_Step, frozen=True, gc=False, tag=True):
    """Open a hand's deck."""


class CutDeck(_Step, frozen=True, gc=False, tag=True):
    """Shuffle and freeze it."""

    cut: bytes
    player_seeds: tuple[PlayerSeed, ...]


class DealCards(_Step, frozen=True, gc=False, tag=True):
    """Deal five cards to each seat."""

    seats: tuple[int, ...]


class ExchangeCards(_Step, frozen=True, gc=False, tag=True):
    """Take discards and deal new cards."""

    seat: int
    discards: tuple[int, ...]
    draw_now: int
    folded_seats: tuple[int, ...]
    rule: ReshuffleRule


class DealLateCard(_Step, frozen=True, gc=False, tag=True):
    """Deal the fourth card of a four-card draw."""

    seat: int
    burn: bool
    folded_seats: tuple[int, ...]
    rule: ReshuffleRule


class CloseDeck(_Step, frozen=True, gc=False, tag=True):
    """Close the deck."""

    void: bool


class FenceTable(msgspec.Struct, frozen=True, gc=False):
    """Raise a table's epoch and close its open deck as void."""

    table: str
    epoch: int


class DrawLots(msgspec.Struct, frozen=True, gc=False):
    """Choose one seat."""

    table: str
    step_id: str
    seats: tuple[int, ...]

    def digest(self) -> bytes:
        """SHA-256 of what is asked."""
        return sha256(_PACK(self.seats)).digest()


HandStep = OpenDeck | CutDeck | DealCards | ExchangeCards | DealLateCard | CloseDeck
Request = HandStep | FenceTable | DrawLots


def check_key(key: HandKey) -> None:
    """Raises `Fault` INVALID_REQUEST unless the key can name a hand."""
    check_table(key.table)
    _check_range("key.epoch", key.epoch, 1, INT64_MAX)
    _check_range("key.hand", key.hand, 1, INT64_MAX)


def check_table(table: str) -> None:
    """Raises `Fault` INVALID_REQUEST unless this is a table's name."""
    if not _TABLE_NAME.fullmatch(table):
        raise _invalid("table", "must be `tables/` and 1 to 64 letters, digits, or `-._~`")


def check_epoch(epoch: int) -> None:
    """Raises `Fault` INVALID_REQUEST unless this can be an epoch."""
    _check_range("epoch", epoch, 1, INT64_MAX)


def check_step_id(step_id: str) -> None:
    """Raises `Fault` INVALID_REQUEST unless this can be a step's id."""
    if not _STEP_ID.fullmatch(step_id):
        raise _invalid("step_id", f"must be 1 to {STEP_ID_CHARACTERS_MAX} printable ASCII characters")


def check_seat(name: str, seat: int) -> None:
    """Raises `Fault` INVALID_REQUEST unless this can be a seat."""
    _check_range(name, seat, 1, SEAT_MAX)


def check_seats(name: str, seats: Sequence[int], least: int, most: int) -> None:
    """Raises `Fault` INVALID_REQUEST unless these are so many distinct seats."""
    if not least <= len(seats) <= most:
        raise _invalid(name, f"needs {least} to {most} seats, not {len(seats)}")
    for seat in seats:
        check_seat(name, seat)
    if len(set(seats)) != len(seats):
        raise _invalid(name, "names a seat twice")


def check_entropy(cut: bytes, player_seeds: Sequence[PlayerSeed]) -> None:
    """Raises `Fault` INVALID_REQUEST unless cut and seeds are within their bounds, the seats ascending."""
    if len(cut) > PLAYER_ENTROPY_BYTES_MAX:
        raise _invalid("cut", f"is longer than {PLAYER_ENTROPY_BYTES_MAX} bytes")
    check_seats("player_seeds", [each.seat for each in player_seeds], 0, SEAT_MAX)
    if any(left.seat >= right.seat for left, right in pairwise(player_seeds)):
        raise _invalid("player_seeds", "must ascend by seat")
    if any(len(each.seed) > PLAYER_ENTROPY_BYTES_MAX for each in player_seeds):
        raise _invalid("player_seeds", f"has one longer than {PLAYER_ENTROPY_BYTES_MAX} bytes")


def card_numbers(name: str, texts: Sequence[str], most: int) -> tuple[int, ...]:
    """The cards' numbers. Raises `Fault` INVALID_REQUEST or DUPLICATE_CARD, without repeating what was sent."""
    if len(texts) > most:
        raise _invalid(name, f"names {len(texts)} cards, at most {most} are possible")
    numbers = [cards.number_of(text) for text in texts]
    found = tuple(number for number in numbers if number is not None)
    if len(found) != len(numbers):
        raise _invalid(name, f"entry {numbers.index(None)} is not a card")
    if len(set(found)) != len(found):
        raise Fault("DUPLICATE_CARD", f"{name} names a card twice", field=name)
    return found


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise _invalid(name, f"must be {least} to {most}, not {value}")


def _invalid(field: str, what: str) -> Fault:
    return Fault("INVALID_REQUEST", f"{field} {what}", field=field)
