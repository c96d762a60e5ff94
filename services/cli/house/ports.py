"""Which port of an embedded house is for what: all follow from one base."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LOOPBACK: Final = "127.0.0.1"
DEFAULT_BASE: Final = 7400
# Replicas of the table service beyond the first take +4 to +8.
TABLE_REPLICAS_MAX: Final = 6
SPAN: Final = 32


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports from `base` on: +0 table, +1 deck, +2 wallet, +3 history, +4.. further table replicas, +10.. metrics in
    the same order, +19 metrics of the history worker, +20 Redis, +21 the console's page, +22 metrics of the
    wallet's worker, +31 the console's metrics.
    """

    base: int
    table_replicas: int = 1

    def __post_init__(self) -> None:
        if not 1024 <= self.base <= 65_535 - SPAN:
            raise ValueError(f"the port base is {self.base}: choose one from 1024 to {65_535 - SPAN}")
        if not 1 <= self.table_replicas <= TABLE_REPLICAS_MAX:
            raise ValueError(f"{self.table_replicas} table replicas: choose 1 to {TABLE_REPLICAS_MAX}")

    @property
    def tables(self) -> list[int]:
        """Ports of all table replicas, the first one's first."""
        return [self.base, *(self.base + 4 + number for number in range(self.table_replicas - 1))]

    @property
    def deck(self) -> int:
        """Port of the deck service."""
        return self.base + 1

    @property
    def wallet(self) -> int:
        """Port of the wallet service."""
        return self.base + 2

    @property
    def history(self) -> int:
        """Port of the history service."""
        return self.base + 3

    @property
    def worker_metrics(self) -> int:
        """Port of the history worker's metrics."""
        return self.base + 19

    @property
    def wallet_worker_metrics(self) -> int:
        """Port of the metrics of the wallet's worker."""
        return self.base + 22

    @property
    def redis(self) -> int:
        """Port of the Redis-compatible server."""
        return self.base + 20

    @property
    def console(self) -> int:
        """Port of the operators' page."""
        return self.base + 21

    def metrics_of(self, port: int) -> int:
        """Port of the metrics of the service on `port`."""
        return port + 10

    def all(self) -> Iterator[int]:
        """Every port that the house takes."""
        for port in (*self.tables, self.deck, self.wallet, self.history, self.console):
            yield port
            yield self.metrics_of(port)
        yield self.worker_metrics
        yield self.wallet_worker_metrics
        yield self.redis

    def taken(self) -> list[int]:
        """Those of the house's ports that somebody else listens on."""
        return [port for port in self.all() if not _is_free(port)]


def address(port: int) -> str:
    """`host:port` on loopback."""
    return f"{LOOPBACK}:{port}"


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # A port whose last connections are still winding down is free for a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
