"""Signing keys of an embedded house: made at first start, kept in a file, published as a JWKS, used to mint tokens.

A production house has its own issuer; the services only ever read that issuer's public keys.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

DEFAULT_LIFETIME_SECONDS: Final = 3600


class SigningKey:
    """An Ed25519 key that signs bearer tokens."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self._public = base64.urlsafe_b64encode(public).rstrip(b"=").decode()
        self.key_id: Final = hashlib.sha256(public).hexdigest()[:16]

    @classmethod
    def generate(cls) -> SigningKey:
        """A fresh key from the operating system's entropy."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load_or_create(cls, path: Path) -> SigningKey:
        """The key in a PEM file that only its owner may read; made there if the file does not exist."""
        if not path.exists():
            pem = cls.generate()._private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
        private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError(f"{path.name} holds no Ed25519 key")
        return cls(private)

    def jwks(self) -> str:
        """The public half as a JSON Web Key Set."""
        key = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": self.key_id, "x": self._public}
        return json.dumps({"keys": [key]})

    def mint(
        self,
        subject: str,
        roles: Iterable[str],
        *,
        now_ms: int,
        lifetime_seconds: int = DEFAULT_LIFETIME_SECONDS,
        issuer: str = "fivedraw",
        audience: str = "fivedraw",
    ) -> str:
        """A bearer token for `subject`, valid from `now_ms` on."""
        now = now_ms // 1000
        claims = {
            "sub": subject,
            "roles": sorted(roles),
            "iss": issuer,
            "aud": audience,
            "iat": now,
            "exp": now + lifetime_seconds,
        }
        return jwt.encode(claims, self._private, algorithm="EdDSA", headers={"kid": self.key_id})
