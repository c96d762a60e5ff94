"""How a hand lies on the disk: each part sealed by the hand's own key, that key by the service's."""

from __future__ import annotations

import os
from typing import Final, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from services.deck.records import Play, Secret
from services.runtime.sealing import SealBrokenError, Sealer

NONCE_BYTES: Final = 12

_PACK: Final = msgspec.msgpack.Encoder().encode
_SECRET: Final = msgspec.msgpack.Decoder(Secret)
_PLAY: Final = msgspec.msgpack.Decoder(Play)

Part = TypeVar("Part", Secret, Play)


class HandSealer:
    """Seals and opens the parts of hands, each bound to its table, hand and purpose."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self.newest_key_id: Final = sealer.key_id_of(sealer.seal(b"", b"deck/probe"))

    def wrap_key(self, table: str, hand: int, key: bytes) -> bytes:
        """A hand's key under the newest service key."""
        return self._sealer.seal(key, _purpose("key", table, hand))

    def unwrap_key(self, table: str, hand: int, wrapped: bytes) -> bytes:
        """A hand's key. Raises `SealBrokenError`."""
        return self._sealer.open(wrapped, _purpose("key", table, hand))

    def key_id_of(self, sealed: bytes) -> str:
        """The id of the service key under which a hand's key or a seed to come is."""
        return self._sealer.key_id_of(sealed)

    def seal_next_seed(self, table: str, deck_number: int, seed: bytes) -> bytes:
        """The seed of a deck to come; no seed stays none."""
        return self._sealer.seal(seed, _purpose("seed", table, deck_number)) if seed else b""

    def open_next_seed(self, table: str, deck_number: int, sealed: bytes) -> bytes:
        """The seed of a deck to come. Raises `SealBrokenError`."""
        return self._sealer.open(sealed, _purpose("seed", table, deck_number)) if sealed else b""

    def seal_secret(self, table: str, hand: int, key: bytes, secret: Secret) -> bytes:
        """Seed, entropy and shuffles of a hand."""
        return _seal(key, _purpose("secret", table, hand), _PACK(secret))

    def open_secret(self, table: str, hand: int, key: bytes, sealed: bytes) -> Secret:
        """Seed, entropy and shuffles of a hand. Raises `SealBrokenError`."""
        return _SECRET.decode(_open(key, _purpose("secret", table, hand), sealed))

    def seal_play(self, table: str, hand: int, key: bytes, play: Play) -> bytes:
        """Where the cards of a hand are, and the answers given."""
        return _seal(key, _purpose("play", table, hand), _PACK(play))

    def open_play(self, table: str, hand: int, key: bytes, sealed: bytes) -> Play:
        """Where the cards of a hand are, and the answers given. Raises `SealBrokenError`."""
        return _PLAY.decode(_open(key, _purpose("play", table, hand), sealed))


def _purpose(what: str, table: str, number: int) -> bytes:
    return f"deck/{what}/{table}/{number}".encode()


def _seal(key: bytes, purpose: bytes, content: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, purpose)


def _open(key: bytes, purpose: bytes, sealed: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose)
    except (InvalidTag, ValueError):
        raise SealBrokenError("a hand's seal does not fit its contents") from None
