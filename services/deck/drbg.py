"""HMAC_DRBG with SHA-256 (NIST SP 800-90A Rev. 1, section 10.1.2), and the generator that feeds it from the source."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final, Protocol

Entropy = Callable[[int], bytes]
"""Gives so many fresh bytes of full entropy; the operating system's, but in tests."""

STRENGTH_BYTES: Final = 32
NONCE_BYTES: Final = 16
# SP 800-90A allows 2^19 bits a request and 2^48 requests between reseeds; the house reseeds far sooner.
REQUEST_BYTES_MAX: Final = 65_536
RESEED_INTERVAL: Final = 1_024

_PERSONALIZATION: Final = b"fivedraw deck generator 1"

# CAVP, HMAC_DRBG.rsp, prediction resistance, SHA-256, no personalization, no additional input, COUNT = 0.
_KNOWN_SEED: Final = bytes.fromhex(
    "9969e54b4703ff31785b879a7e5c0eae0d3e309559e9fe96b0676d49d591ea4d07d20d46d064757d3023cac2376127ab"
)
_KNOWN_RESEEDS: Final = (
    bytes.fromhex("c60f2999100f738c10f74792676a3fc4a262d13721798046e29a295181569f54"),
    bytes.fromhex("c11d4524c9071bd3096015fcf7bc24a607f22fa065c937658a2a77a8699089f4"),
)
_KNOWN_ANSWER: Final = bytes.fromhex(
    "abc015856094803a938dffd20da94843870ef935b82cfec17706b8f551b83850"
    "44235dd44b599f94b39be78dd476e0cf11309c995a7334e0a78b37bc9586235086fa3b637ba91cf8fb65efa22a589c13"
    "7531aa7b2d4e2607aac27292b01c698e6e01ae679eb87c01a89c7422d4372d6d754ababb4bf896fcb1cd09d692d0283f"
)


class ReseedRequiredError(RuntimeError):
    """The generator has answered as many requests as one seed allows."""


class HmacDrbg:
    """The mechanism alone: no source, no policy. Inputs are the standard's; it is not safe to share between threads."""

    def __init__(self, entropy: bytes, nonce: bytes, personalization: bytes = b"") -> None:
        self._key = bytes(32)
        self._value = b"\x01" * 32
        self._update(entropy + nonce + personalization)
        self._requests = 1

    def reseed(self, entropy: bytes, additional: bytes = b"") -> None:
        """Mixes fresh entropy into the state."""
        self._update(entropy + additional)
        self._requests = 1

    def generate(self, count: int, additional: bytes = b"") -> bytes:
        """`count` pseudorandom bytes. Raises `ReseedRequiredError`, and `ValueError` beyond the limit of a request."""
        if not 0 <= count <= REQUEST_BYTES_MAX:
            raise ValueError(f"a request is for 0 to {REQUEST_BYTES_MAX} bytes, not {count}")
        if self._requests > RESEED_INTERVAL:
            raise ReseedRequiredError(f"{RESEED_INTERVAL} requests since the last reseed")
        if additional:
            self._update(additional)
        blocks = []
        for _ in range(-(-count // 32)):
            self._value = hmac.digest(self._key, self._value, "sha256")
            blocks.append(self._value)
        self._update(additional)
        self._requests += 1
        return b"".join(blocks)[:count]

    def _update(self, provided: bytes) -> None:
        self._key = hmac.digest(self._key, self._value + b"\x00" + provided, "sha256")
        self._value = hmac.digest(self._key, self._value, "sha256")
        if provided:
            self._key = hmac.digest(self._key, self._value + b"\x01" + provided, "sha256")
            self._value = hmac.digest(self._key, self._value, "sha256")

    def __repr__(self) -> str:
        return "HmacDrbg(...)"


def gives_known_answer() -> bool:
    """Whether the mechanism still gives a published answer (SP 800-90A, 11.3: tested before it is used)."""
    mechanism = HmacDrbg(_KNOWN_SEED[:STRENGTH_BYTES], _KNOWN_SEED[STRENGTH_BYTES:])
    answer = b""
    for fresh in _KNOWN_RESEEDS:
        mechanism.reseed(fresh)
        answer = mechanism.generate(len(_KNOWN_ANSWER))
    return answer == _KNOWN_ANSWER


class Source(Protocol):
    """A tested source of entropy: `read` raises when a test of the source fails."""

    def read(self, count: int) -> bytes:
        """So many bytes, each of which went through the tests."""
        ...


class Generator:
    """The deck's only randomness: the mechanism, seeded and reseeded from a tested source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._drbg = HmacDrbg(source.read(STRENGTH_BYTES), source.read(NONCE_BYTES), _PERSONALIZATION)
        self._requests = 0
        self.reseeds = 0

    def fresh(self, count: int) -> bytes:
        """`count` bytes with prediction resistance: the source is read before they are made."""
        self._reseed()
        return self._generate(count)

    def more(self, count: int) -> bytes:
        """`count` bytes, with a reseed where one is due."""
        if self._requests >= RESEED_INTERVAL:
            self._reseed()
        return self._generate(count)

    def below(self, bound: int) -> int:
        """A uniform whole number from 0 up to, not including, `bound` (1 to 256), with prediction resistance."""
        if not 1 <= bound <= 256:
            raise ValueError(f"a bound is 1 to 256, not {bound}")
        fair = 256 - 256 % bound
        while True:
            for byte in self.fresh(32):
                if byte < fair:
                    return byte % bound

    def _reseed(self) -> None:
        self._drbg.reseed(self._source.read(STRENGTH_BYTES))
        self._requests = 0
        self.reseeds += 1

    def _generate(self, count: int) -> bytes:
        self._requests += 1
        return self._drbg.generate(count)

    def __repr__(self) -> str:
        return "Generator(...)"
