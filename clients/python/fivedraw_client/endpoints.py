"""Where a casino answers: one address behind a gateway, or one for each service."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

import grpc

# Keepalive finds a dead peer in 25 s, and stays above the least interval that the house allows. Back-off after a
# refused connection stays short, since a restarted service answers again within a second or two.
CHANNEL_OPTIONS: Final = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses (`host:port`) of the services that clients call, and the certificates to trust.

    `roots` is a PEM bundle of the house's authority; `None` means the system's. Plaintext is spoken on loopback only,
    and only while `tls` is off.
    """

    table: str
    wallet: str
    history: str
    tls: bool = False
    roots: bytes | None = None

    @classmethod
    def single(cls, target: str, *, tls: bool = False, roots: bytes | None = None) -> Endpoints:
        """One address for everything, as behind a gateway."""
        return cls(target, target, target, tls, roots)

    def channel(self, target: str) -> grpc.aio.Channel:
        """Opens a channel to one of the addresses. Raises `ValueError` for plaintext beyond loopback."""
        if self.tls:
            return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(self.roots), options=CHANNEL_OPTIONS)
        if not _is_loopback(target):
            raise ValueError(f"{target} is not on loopback: a token may only travel there over TLS")
        return grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)


def _is_loopback(target: str) -> bool:
    host = target.rpartition(":")[0].strip("[]")
    if host == "localhost" or target.startswith("unix:"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
