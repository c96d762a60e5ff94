"""The issuer's public keys: read from a file or an https URL, remembered, and read again within bounds."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from services.runtime import telemetry
from services.runtime.clock import Clock

ALGORITHMS: Final = frozenset({"EdDSA", "RS256"})
RSA_BITS_MIN: Final = 2048
DOCUMENT_BYTES_MAX: Final = 256 * 1024
KEYS_MAX: Final = 64
FETCH_TIMEOUT_SECONDS: Final = 5.0
# A key set is read again this often, and for a key it does not have at most this often.
REFRESH_SECONDS: Final = 300.0
UNKNOWN_KEY_REFRESH_SECONDS: Final = 10.0
# While the source cannot be read, the last good keys hold this long.
STALE_SECONDS_MAX: Final = 3600.0

_FAILURES = telemetry.counter("fivedraw_jwks_failures_total", "Readings of the key set that failed.")


class KeySet:
    """The keys at one source. `version` grows when the keys change."""

    def __init__(self, source: str, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._document = b""
        self._read_at = float("-inf")
        self._tried_at = float("-inf")
        self._reading: asyncio.Lock = asyncio.Lock()
        self.version = 0

    async def refresh_if_due(self) -> None:
        """Reads the source again when the keys are old. A source that fails leaves the old keys for a while."""
        now = self._clock.monotonic()
        if now - self._read_at < REFRESH_SECONDS or now - self._tried_at < UNKNOWN_KEY_REFRESH_SECONDS:
            return
        await self._refresh()

    async def key_for(self, key_id: str, algorithm: str) -> jwt.PyJWK:
        """The key that a token's header names. Raises `jwt.InvalidKeyError` where there is none for it."""
        if algorithm not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError("the algorithm is not allowed")
        if key_id not in self._keys and self._clock.monotonic() - self._tried_at >= UNKNOWN_KEY_REFRESH_SECONDS:
            await self._refresh()
        key = self._keys.get(key_id)
        if key is None:
            raise jwt.InvalidKeyError("no such key")
        if key.algorithm_name != algorithm:
            raise jwt.InvalidAlgorithmError("the key is for another algorithm")
        return key

    async def _refresh(self) -> None:
        started = self._clock.monotonic()
        async with self._reading:
            if self._tried_at >= started:
                # Somebody else read it while this call waited.
                return
            self._tried_at = self._clock.monotonic()
            try:
                document = await self._read()
                keys = parse(document)
            except (OSError, ValueError, jwt.PyJWTError) as error:
                _FAILURES.inc()
                telemetry.logger("runtime.jwks").warning("the key set cannot be read", error=repr(error))
                if self._tried_at - self._read_at > STALE_SECONDS_MAX and self._keys:
                    self._keys, self._document = {}, b""
                    self.version += 1
                return
            self._read_at = self._tried_at
            if document != self._document:
                self._keys, self._document = keys, document
                self.version += 1

    async def _read(self) -> bytes:
        if self._source.startswith(("https://", "http://")):
            return await asyncio.to_thread(_fetch, self._source)
        return Path(self._source).read_bytes()  # noqa: ASYNC240 - one small local file


def parse(document: bytes) -> dict[str, jwt.PyJWK]:
    """The signing keys of a JWKS document by key id. Raises `ValueError`; skips keys of kinds that are not allowed."""
    if len(document) > DOCUMENT_BYTES_MAX:
        raise ValueError("the key set is too large")
    content = json.loads(document)
    entries = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(entries, list) or len(entries) > KEYS_MAX:
        raise ValueError("the key set has no list of keys, or too many")
    keys: dict[str, jwt.PyJWK] = {}
    for entry in entries:
        key = _key(entry)
        if key is not None:
            keys[str(entry.get("kid", ""))] = key
    return keys


def _key(entry: Any) -> jwt.PyJWK | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    algorithm = {"OKP": "EdDSA", "RSA": "RS256"}.get(str(entry.get("kty")))
    if algorithm is None or entry.get("alg", algorithm) != algorithm:
        return None
    if algorithm == "EdDSA" and entry.get("crv") != "Ed25519":
        return None
    key = jwt.PyJWK(entry, algorithm)
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < RSA_BITS_MIN:
        return None
    return key


def _fetch(url: str) -> bytes:
    # The scheme was checked by the caller, and in production by the settings.
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310
    context = ssl.create_default_context()
    with urllib.request.urlopen(request, timeout=FETCH_TIMEOUT_SECONDS, context=context) as response:  # noqa: S310
        body: bytes = response.read(DOCUMENT_BYTES_MAX + 1)
    return body
