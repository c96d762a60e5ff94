"""What is published before it can be checked: seeds, places, chains (docs/fairness.md, section Commitments)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
FIRST_CHAIN: Final = bytes(HASH_BYTES)

_CHAIN_DOMAIN: Final = b"fivedraw.chain.v1"
_CHAIN: Final = struct.Struct(">QQ")
_U32: Final = struct.Struct(">I")


def seed_commitment(seed: bytes) -> bytes:
    """SHA-256 over the 32 bytes of a hand's seed."""
    return sha256(seed).digest()


def chain_link(previous: bytes, table: str, deck_number: int, hand: int, commitment: bytes) -> bytes:
    """Links a deck to the table's previous one, so that none can be left out or put in later."""
    name = table.encode()
    return sha256(
        _U32.pack(len(_CHAIN_DOMAIN))
        + _CHAIN_DOMAIN
        + previous
        + _U32.pack(len(name))
        + name
        + _CHAIN.pack(deck_number, hand)
        + commitment
    ).digest()


def leaf(shuffle: int, place: int, card: int, salt: bytes) -> bytes:
    """The commitment to one place of one shuffle."""
    return sha256(bytes((0, shuffle, place, card)) + salt).digest()


def leaves(shuffle: int, order: Sequence[int], salts: bytes) -> list[bytes]:
    """The commitments to all places of a shuffle; `salts` holds 16 bytes for each place, in order."""
    return [
        leaf(shuffle, place, card, salts[place * SALT_BYTES : (place + 1) * SALT_BYTES])
        for place, card in enumerate(order)
    ]


def root_of(level: list[bytes]) -> bytes:
    """The Merkle root; a node without a neighbour goes up unchanged. At least one leaf."""
    while len(level) > 1:
        level = _parents(level)
    return level[0]


def path_of(level: list[bytes], place: int) -> tuple[bytes, ...]:
    """The neighbours from a leaf up to the root."""
    path = []
    while len(level) > 1:
        neighbour = place ^ 1
        if neighbour < len(level):
            path.append(level[neighbour])
        level, place = _parents(level), place // 2
    return tuple(path)


def root_from(start: bytes, place: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a leaf and its path lead to in a tree of `size` leaves; `None` where the path does not fit."""
    left = list(path)
    node = start
    while size > 1:
        if place ^ 1 < size:
            if not left:
                return None
            neighbour = left.pop(0)
            node = _parent(neighbour, node) if place & 1 else _parent(node, neighbour)
        place, size = place // 2, (size + 1) // 2
    return None if left else node


def _parents(level: list[bytes]) -> list[bytes]:
    above = [_parent(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
    if len(level) % 2:
        above.append(level[-1])
    return above


def _parent(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
