"""Writing finished hands: read the log, write one row, confirm; whatever breaks in between is done again by the next.

Everything here may run twice, in any order, in several workers at once: the row is written once, and a confirmation
repeated does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import grpc
from fivedraw.history.v1 import record_pb2
from fivedraw.table.v1 import table_pb2, table_service_pb2
from sqlalchemy.exc import DBAPIError

from services.history import store
from services.history.names import HandKey, parse_table
from services.history.record import LogCutError, RecordBrokenError, encode, record_of, record_of_ledger
from services.history.store import NewHand, Written
from services.history.summary import Summary, summarise
from services.history.together import Together
from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.database import Database, DatabaseBusyError
from services.runtime.errors import Fault

UNWRITTEN_PAGE_MAX: Final = 1000
# From well within the promise of ten seconds to far beyond it.
LAG_BUCKETS_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)

_LAG: Final = telemetry.histogram(
    "fivedraw_history_lag_seconds", "Seconds from a hand's end to its row.", buckets=LAG_BUCKETS_SECONDS
)


class FinishedHand(NamedTuple):
    """A hand whose history is due: `tables/{table}`, the table's epoch, the hand's number."""

    table: str
    epoch: int
    hand: int


@dataclass(frozen=True, slots=True)
class HandLog:
    """A hand's log as the table service keeps it."""

    table: table_pb2.Table
    events: Sequence[table_service_pb2.LoggedEvent]


class HandLogReader(Protocol):
    """The table service's log of finished hands."""

    async def read(self, hand: FinishedHand) -> HandLog | None:
        """All events of a finished hand, private parts sealed; None if the table has no log of it."""
        ...

    async def confirm(self, hand: FinishedHand) -> None:
        """Says that the history is stored, so that the log may be trimmed."""
        ...

    async def list_unwritten(self, older_than_seconds: int, limit: int) -> list[FinishedHand]:
        """Finished hands that were not confirmed, oldest first."""
        ...


class LedgerReader(Protocol):
    """The ledger's view of hands, for those whose log is lost."""

    async def read(self, key: HandKey) -> record_pb2.LedgerHand | None:
        """What the ledger knows of a hand; None if it never saw it. Its close time is not set while it is open."""
        ...


class HandNotFoundError(LookupError):
    """Neither the table's log nor the ledger knows the hand. Nothing was written."""


# What can keep one hand from being written, and must not keep others from it.
EXPECTED: Final = (grpc.aio.AioRpcError, Fault, HandNotFoundError, RecordBrokenError, DatabaseBusyError, DBAPIError)


def reason_of(error: Exception) -> str:
    """A word for what kept a hand from being written, for logs and counters."""
    return error.reason if isinstance(error, Fault) else type(error).__name__


class HandWriter:
    """Writes finished hands into the history. `ledger` is None where lost logs are not made up for."""

    def __init__(
        self, database: Database, log: HandLogReader, clock: Clock, ledger: LedgerReader | None = None
    ) -> None:
        self._database = database
        self._together = Together(database)
        self._log = log
        self._clock = clock
        self._ledger = ledger

    async def write_hand(self, hand: FinishedHand, made_up: record_pb2.HandRecord | None = None) -> Written:
        """Writes one finished hand and confirms it; again: no change, and a confirmation again.

        From its log, or from the ledger where the log is cut. `made_up` is what to write where there is no log at all.
        Raises `HandNotFoundError`, `RecordBrokenError` (the log is no finished hand; it stays unconfirmed, to be looked
        at), `runtime.database.DatabaseBusyError`, `store.HandIdsExhaustedError`, and what the readers raise.
        """
        key = HandKey(parse_table(hand.table), hand.hand)
        judged = await self._judged(key, hand, made_up)
        if judged is None:
            await self._log.confirm(hand)
            return Written.UNCHANGED
        record, summary = judged
        written = await self._together.write(NewHand(summary, encode(record), self._clock.now_ms()))
        _LAG.observe(max(0, self._clock.now_ms() - summary.end_ms) / 1000)
        await self._log.confirm(hand)
        return written

    async def list_unwritten(self, older_than_seconds: int, limit: int = UNWRITTEN_PAGE_MAX) -> list[FinishedHand]:
        """Finished hands that are due for longer than this, oldest first."""
        return await self._log.list_unwritten(older_than_seconds, min(limit, UNWRITTEN_PAGE_MAX))

    async def _judged(
        self, key: HandKey, hand: FinishedHand, made_up: record_pb2.HandRecord | None
    ) -> tuple[record_pb2.HandRecord, Summary] | None:
        """The hand's record from its log, or from the ledger where the log is lost or cut.

        None for a hand that has no log since it is written already: a doubled task, or a confirmation that was lost.
        """
        log = await self._log.read(hand)
        if log is not None and log.events:
            record = record_of(log.table, log.events)
            try:
                return record, summarise(key, record)
            except LogCutError:
                if self._ledger is None:
                    raise
        if log is None and await self._database.read(store.hand_is_written, key):
            return None
        record = made_up if made_up is not None else await self._from_ledger(key, log)
        return record, summarise(key, record)

    async def _from_ledger(self, key: HandKey, log: HandLog | None) -> record_pb2.HandRecord:
        known = await self._ledger.read(key) if self._ledger is not None and log is not None else None
        if known is None or log is None or not known.HasField("close_time"):
            raise HandNotFoundError(f"{key.name}: no log, and the ledger knows no such closed hand")
        return record_of_ledger(log.table, known)
