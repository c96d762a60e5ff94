"""The order of a deck from its seed: version 1 of the byte-level specification (docs/fairness.md, section Shuffle)."""

from __future__ import annotations

import hmac
import struct
from collections.abc import Sequence
from typing import Final

import msgspec

VERSION: Final = 1
SEED_BYTES: Final = 32
PLAYER_ENTROPY_BYTES_MAX: Final = 64

_DOMAIN: Final = b"fivedraw.shuffle.v1"
_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")


class PlayerSeed(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One player's part of a hand's entropy: the seat and 0 to 64 bytes."""

    seat: int
    seed: bytes


def context_of(table: str, hand: int, cut: bytes, player_seeds: Sequence[PlayerSeed]) -> bytes:
    """Everything public that goes into a hand's shuffles, in one unambiguous string of bytes."""
    parts = [_sized(_DOMAIN), _sized(table.encode()), _U64.pack(hand), _sized(cut), _U32.pack(len(player_seeds))]
    for each in player_seeds:
        parts += (_U32.pack(each.seat), _sized(each.seed))
    return b"".join(parts)


def shuffled(seed: bytes, context: bytes, number: int, cards: Sequence[int]) -> tuple[int, ...]:
    """The cards in the order of shuffle `number` (0 is the opening one).

    `cards` are in ascending order, at most 256. Fisher-Yates from the last place down; each choice takes bytes of
    the keyed stream and rejects those that would favour a place.
    """
    order = list(cards)
    key = hmac.digest(seed, context + _U32.pack(number), "sha256")
    block, used, counter = b"", 0, 0
    for last in range(len(order) - 1, 0, -1):
        size = last + 1
        fair = 256 - 256 % size
        while True:
            if used == len(block):
                block, used, counter = hmac.digest(key, _U32.pack(counter), "sha256"), 0, counter + 1
            byte = block[used]
            used += 1
            if byte < fair:
                break
        chosen = byte % size
        order[last], order[chosen] = order[chosen], order[last]
    return tuple(order)


def _sized(content: bytes) -> bytes:
    return _U32.pack(len(content)) + content
