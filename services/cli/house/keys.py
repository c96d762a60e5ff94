"""The keys of an embedded house: made at the first start, used by all later ones, readable by their owner only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.cli.house.folder import Folder, FolderError
from services.runtime.tokens import SigningKey

KEY_BYTES: Final = 32
# What a command's own tokens are good for; it mints a new one when half of the time is over.
TOKEN_SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True)
class HouseKeys:
    """Secrets as the services' settings take them (hex digits; lists as `id:hex`), and the key that signs tokens."""

    signing: SigningKey
    service_key: str
    sealing_keys: str
    deck_keys: str
    console_key: str
    redis_password: str

    @classmethod
    def load_or_make(cls, folder: Folder) -> HouseKeys:
        """The folder's keys; those that are missing are made. Writes the public key set beside them."""
        keys = cls(
            signing=SigningKey.load_or_create(folder.keys / "signing.pem"),
            service_key=_secret(folder, "service", lambda: secrets.token_hex(KEY_BYTES)),
            sealing_keys=_secret(folder, "sealing", lambda: f"s1:{secrets.token_hex(KEY_BYTES)}"),
            deck_keys=_secret(folder, "deck", lambda: f"d1:{secrets.token_hex(KEY_BYTES)}"),
            console_key=_secret(folder, "console", lambda: secrets.token_hex(KEY_BYTES)),
            redis_password=_secret(folder, "redis", lambda: secrets.token_hex(KEY_BYTES)),
        )
        folder.write_private(jwks_file(folder), keys.signing.jwks())
        return keys

    def mint(self, subject: str, role: str, *, seconds: int = TOKEN_SECONDS) -> str:
        """A token from now on."""
        roles = [role] if role else []
        return self.signing.mint(subject, roles, now_ms=time.time_ns() // 1_000_000, lifetime_seconds=seconds)


class Minter:
    """Tokens for whoever asks, remembered for half of their time: a bot asks with every call."""

    def __init__(self, keys: HouseKeys) -> None:
        self._keys = keys
        self._held: dict[tuple[str, str], tuple[float, str]] = {}

    def __call__(self, subject: str, role: str) -> str:
        """The present token of a subject in a role."""
        now = time.monotonic()
        until, token = self._held.get((subject, role), (0.0, ""))
        if now >= until:
            token = self._keys.mint(subject, role)
            self._held[subject, role] = (now + TOKEN_SECONDS / 2, token)
        return token


def jwks_file(folder: Folder) -> Path:
    """The public key set that the services read."""
    return folder.keys / "jwks.json"


def existing(folder: Folder) -> HouseKeys:
    """The keys of a house that was started before. Raises `FolderError` if there was none."""
    if not (folder.keys / "signing.pem").is_file():
        raise FolderError(f"no house was started on {folder.root} yet: `fivedraw up --data {folder.root}`")
    return HouseKeys.load_or_make(folder)


def _secret(folder: Folder, name: str, make: Callable[[], str]) -> str:
    path = folder.keys / name
    if not path.is_file():
        folder.write_private(path, make())
    return path.read_text().strip()
