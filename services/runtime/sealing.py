"""Sealed bytes: AES-256-GCM with associated data, a key id in front, and padding so that a length tells nothing.

Layout: 1 byte version, 1 byte length of the key id, the key id, 12 bytes nonce, ciphertext with its 16-byte tag. The
header is authenticated too. Inside: 4 bytes big-endian length of the content, the content, zeros up to the padding.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION: Final = 1
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16

_LENGTH: Final = struct.Struct(">I")


class SealBrokenError(ValueError):
    """The bytes were not sealed by one of our keys for this purpose, or were changed since."""


class Sealer:
    """Seals with the first key and opens with any; keys are `(id, 32 bytes)`, newest first."""

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        if not keys:
            raise ValueError("a sealer needs at least one key")
        self._ciphers: dict[bytes, AESGCM] = {}
        for key_id, key in keys:
            name = key_id.encode()
            if not 1 <= len(name) <= 255 or len(key) != KEY_BYTES or name in self._ciphers:
                raise ValueError(f"sealing key {key_id!r} needs an id of its own and {KEY_BYTES} bytes")
            self._ciphers[name] = AESGCM(key)
        self._newest = keys[0][0].encode()

    def seal(self, content: bytes, associated: bytes, *, pad_to: int = 0) -> bytes:
        """Seals `content` for the purpose that `associated` names (it must be given again to open).

        With `pad_to`, the content is padded to the next multiple of that many bytes.
        """
        inner = _LENGTH.pack(len(content)) + content
        if pad_to:
            inner += bytes(-len(inner) % pad_to)
        header = bytes((VERSION, len(self._newest))) + self._newest
        nonce = os.urandom(NONCE_BYTES)
        return header + nonce + self._ciphers[self._newest].encrypt(nonce, inner, header + associated)

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """Opens what `seal` made. Raises `SealBrokenError` without saying what was wrong with it."""
        if len(sealed) < 2 or sealed[0] != VERSION:
            raise SealBrokenError("not a sealed value")
        header_end = 2 + sealed[1]
        nonce_end = header_end + NONCE_BYTES
        cipher = self._ciphers.get(sealed[2:header_end])
        if cipher is None or len(sealed) < nonce_end + TAG_BYTES + _LENGTH.size:
            raise SealBrokenError("not sealed by a key of this house")
        try:
            inner = cipher.decrypt(sealed[header_end:nonce_end], sealed[nonce_end:], sealed[:header_end] + associated)
        except InvalidTag:
            raise SealBrokenError("the seal does not fit its contents") from None
        (length,) = _LENGTH.unpack_from(inner)
        if length > len(inner) - _LENGTH.size:
            raise SealBrokenError("the seal does not fit its contents")
        return inner[_LENGTH.size : _LENGTH.size + length]

    def key_id_of(self, sealed: bytes) -> str:
        """The id of the key that sealed it, to find what is still under an old key."""
        return sealed[2 : 2 + sealed[1]].decode()


def event_aad(table: str, epoch: int, sequence: int, seat: int) -> bytes:
    """The associated data of one seat's private part of one table event; `table` is the full name, `tables/x`.

    The table service seals with it and the history service opens with it, so that a sealed part fits nowhere else.
    """
    return f"{table}|{epoch}|{sequence}|{seat}".encode()
