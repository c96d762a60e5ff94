"""What every table of a process shares."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from services.runtime.clock import Clock
from services.runtime.sealing import Sealer
from services.table.effects import Effects
from services.table.ports import DeckPort, LedgerPort
from services.table.registry import Registry
from services.table.store import TableStore

COMMIT_ID_BYTES: Final = 12


class Parts(msgspec.Struct, frozen=True):
    """Stores, peers and clock, as the process was wired."""

    store: TableStore
    registry: Registry
    ledger: LedgerPort
    decks: DeckPort
    effects: Effects
    sealer: Sealer
    clock: Clock
    new_commit_id: Callable[[], str] = lambda: secrets.token_hex(COMMIT_ID_BYTES)
