"""The settings of a service: read once from the environment and secret files, with all faults named at once.

Every variable begins with `FIVEDRAW_`. A secret may instead lie in a file of that name, in lower case, in the folder
that `FIVEDRAW_SECRETS_DIR` names (as container engines mount them). Nothing is read at import.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

SEALING_KEY_BYTES = 32
SERVICE_KEY_BYTES_MIN = 32

Environment = Literal["embedded", "production"]


class SettingsError(ValueError):
    """The settings are wrong; the message has a line for each fault."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("settings:\n" + "\n".join(f"  {fault}" for fault in self.faults))


class ServiceSettings(BaseSettings):
    """What every service can be told. A service with settings of its own derives from this class."""

    model_config = SettingsConfigDict(env_prefix="FIVEDRAW_", extra="ignore", frozen=True)

    environment: Environment = "embedded"

    # Where it serves: `host:port`; port 0 takes a free one.
    listen: str = "127.0.0.1:0"
    metrics_listen: str = "127.0.0.1:0"
    reflection: bool = True

    # Stores.
    database_url: SecretStr = SecretStr("sqlite:///fivedraw.sqlite")
    database_pool_size: int = Field(default=8, ge=1, le=200)
    migrations: Path | None = None
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    redis_pool_size: int = Field(default=64, ge=1, le=10_000)
    broker_url: SecretStr = SecretStr("redis://127.0.0.1:6380/0")

    # Peers: `host:port`, or any target that gRPC resolves.
    table_address: str = "127.0.0.1:7101"
    deck_address: str = "127.0.0.1:7102"
    wallet_address: str = "127.0.0.1:7103"
    history_address: str = "127.0.0.1:7104"

    # Who is who. `jwks` is a file's path or an https URL.
    jwks: str = ""
    issuer: str = "fivedraw"
    audience: str = "fivedraw"
    service_key: SecretStr = SecretStr("")
    # `id:64 hex digits`, comma-separated; the first seals, all open.
    sealing_keys: SecretStr = SecretStr("")

    # Whether what undoes or moves what others have won takes the tokens of two people.
    two_people: bool = True

    # Mutual TLS: all three or none.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"

    # Traces: the collector's address (OTLP over gRPC, TLS beyond loopback); nothing is traced without one. Of the
    # traces that begin in the house this share is kept.
    trace_endpoint: str = ""
    trace_ratio: float = Field(default=0.01, ge=0, le=1)

    # Bounds of every call.
    request_bytes_max: int = Field(default=64 * 1024, ge=1024)
    unary_timeout_ms: int = Field(default=10_000, ge=1)
    streams_per_caller_max: int = Field(default=32, ge=1)
    calls_at_once_max: int = Field(default=2_000, ge=1)
    drain_ms: int = Field(default=10_000, ge=0)

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Reads the environment; `overrides` win over it. Raises `SettingsError` with every fault."""
        secrets_dir = os.environ.get("FIVEDRAW_SECRETS_DIR")
        try:
            return cls._read(secrets_dir, overrides)
        except ValidationError as error:
            faults = _faults(error)
            wrong = {str(each["loc"][0]) for each in error.errors() if each["loc"]}
        # The check of the whole does not run while a field is wrong: give those their defaults to hear the rest.
        defaults = {name: cls.model_fields[name].get_default() for name in wrong if name in cls.model_fields}
        if defaults:
            try:
                cls._read(secrets_dir, {**overrides, **defaults})
            except ValidationError as error:
                faults.extend(_faults(error))
        raise SettingsError(dict.fromkeys(faults))

    @classmethod
    def _read(cls, secrets_dir: str | None, overrides: dict[str, Any]) -> Self:
        if secrets_dir is None:
            return cls(**overrides)
        return cls(_secrets_dir=secrets_dir, **overrides)  # type: ignore[call-arg]  # pydantic's own, not a field

    @property
    def has_tls(self) -> bool:
        """Whether this service speaks TLS to everybody."""
        return self.tls_cert is not None

    def service_key_bytes(self) -> bytes:
        """The key that proves services to each other in an embedded house."""
        return bytes.fromhex(self.service_key.get_secret_value())

    def sealing_key_list(self) -> list[tuple[str, bytes]]:
        """The sealing keys as `(id, 32 bytes)`, newest first."""
        pairs = [
            pair.strip().partition(":") for pair in self.sealing_keys.get_secret_value().split(",") if pair.strip()
        ]
        return [(key_id, bytes.fromhex(digits)) for key_id, _, digits in pairs]

    @model_validator(mode="after")
    def _check_as_a_whole(self) -> Self:
        faults = [*self._key_faults(), *self._tls_faults(), *self._plaintext_faults()]
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def _key_faults(self) -> Iterable[str]:
        try:
            key = self.service_key_bytes()
            if key and len(key) < SERVICE_KEY_BYTES_MIN:
                yield f"service_key: needs at least {SERVICE_KEY_BYTES_MIN} bytes in hex"
        except ValueError:
            yield "service_key: is not hex"
        try:
            for key_id, key in self.sealing_key_list():
                if not key_id or len(key_id.encode()) > 255 or len(key) != SEALING_KEY_BYTES:
                    yield f"sealing_keys: {key_id!r} needs an id and {SEALING_KEY_BYTES} bytes in hex"
        except ValueError:
            yield "sealing_keys: a key is not hex"

    def _tls_faults(self) -> Iterable[str]:
        paths = {"tls_cert": self.tls_cert, "tls_key": self.tls_key, "tls_ca": self.tls_ca}
        given = [name for name, path in paths.items() if path is not None]
        if given and len(given) < len(paths):
            yield f"tls: {', '.join(sorted(set(paths) - set(given)))} missing; all three or none"
        for name, path in paths.items():
            if path is not None and not path.is_file():
                yield f"{name}: no such file"

    def _plaintext_faults(self) -> Iterable[str]:
        """Plaintext stays on loopback; a production house is held to it for its stores and peers too."""
        for name in ("listen", "metrics_listen"):
            if not self.has_tls and not is_loopback(getattr(self, name)):
                yield f"{name}: plaintext is for loopback only; set tls_cert, tls_key and tls_ca"
        if self.environment != "production":
            return
        for name in ("table_address", "deck_address", "wallet_address", "history_address"):
            if not self.has_tls and not is_loopback(getattr(self, name)):
                yield f"{name}: production calls no peer in plaintext; set tls_cert, tls_key and tls_ca"
        for name in ("redis_url", "broker_url"):
            parts = urlsplit(getattr(self, name).get_secret_value())
            if parts.scheme == "redis" and not is_loopback(parts.hostname or ""):
                yield f"{name}: production needs rediss://"
        database = urlsplit(self.database_url.get_secret_value())
        is_remote = database.scheme.startswith("postgresql") and not is_loopback(database.hostname or "localhost")
        if is_remote and "sslmode=verify-full" not in database.query:
            yield "database_url: production needs sslmode=verify-full"
        if self.jwks.startswith("http://"):
            yield "jwks: production needs https:// or a file"


def is_loopback(address: str) -> bool:
    """Whether `host`, `host:port`, `[v6]:port` or a Unix socket stays on this machine."""
    if address.startswith(("unix:", "/")):
        return True
    host = address.removeprefix("dns:///")
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _faults(error: ValidationError) -> list[str]:
    # Only names and reasons: a wrong value may be a secret in the wrong place.
    faults: list[str] = []
    for each in error.errors(include_input=False, include_url=False):
        where = ".".join(str(part) for part in each["loc"])
        message = each["msg"].removeprefix("Value error, ")
        faults.extend(f"{where}: {message}" if where else line for line in message.splitlines())
    return faults
