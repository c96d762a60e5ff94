"""What the ledger does of itself, from time to time: give back what was reserved too long, and sweep hot accounts.

Both are batches like any other, under ids made of what they are about, so that two processes that sweep at once, or
one that was killed between two steps, do nothing twice.
"""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError

from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.database import Database, DatabaseBusyError
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet import metrics, reservation_reads
from services.wallet.chart import HEAD, AccountKind
from services.wallet.ledger import Ledger
from services.wallet.schema import accounts

# What one round may do; the rest waits for the next one.
EXPIRED_PER_ROUND_MAX: Final = 200
UNSWEPT_PER_ROUND_MAX: Final = 100

_log = telemetry.logger("wallet.sweeping")

# The condition of the index of hot accounts, literally.
_HOT: Final = text("accounts.kind IN (5, 6)")


class Sweeper:
    """Expires reservations every `expiry_interval_ms`, and sweeps hot accounts every `sweep_interval_ms`."""

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        clock: Clock,
        *,
        expiry_interval_ms: int = 1_000,
        sweep_interval_ms: int = 60_000,
    ) -> None:
        self._db = db
        self._ledger = ledger
        self._clock = clock
        self._expiry_interval_seconds = expiry_interval_ms / 1000
        self._sweep_interval_ms = sweep_interval_ms

    async def run(self) -> None:
        """Sweeps until cancelled."""
        next_sweep = self._clock.monotonic() + self._sweep_interval_ms / 1000
        while True:
            await self._clock.sleep(self._expiry_interval_seconds)
            try:
                await self.expire()
                if self._clock.monotonic() >= next_sweep:
                    next_sweep = self._clock.monotonic() + self._sweep_interval_ms / 1000
                    await self.sweep()
            except (DBAPIError, DatabaseBusyError) as error:
                metrics.SWEEPS_FAILED.inc()
                _log.warning("could not sweep", error=str(error))
            except Fault as fault:
                # The queue is full, or the database away for a moment: what is due is found again.
                metrics.SWEEPS_FAILED.inc()
                _log.warning("could not sweep", reason=fault.reason)

    async def expire(self) -> int:
        """Gives back what was held past its time, at most `EXPIRED_PER_ROUND_MAX`; returns how many."""
        due = await self._db.read(reservation_reads.past_their_time, self._clock.now_ms(), EXPIRED_PER_ROUND_MAX)
        outcomes = await asyncio.gather(*(self._expire(reservation) for reservation in due))
        metrics.EXPIRED.inc(sum(outcomes))
        return sum(outcomes)

    async def sweep(self) -> tuple[c.Swept, ...]:
        """Gathers the hot accounts of each currency into their heads; in one interval, each currency once."""
        period = self._clock.now_ms() // self._sweep_interval_ms
        swept = []
        unswept = await self._db.read(_unswept, UNSWEPT_PER_ROUND_MAX)
        for currency in sorted({currency for currency, _, _ in unswept}):
            swept.append(await self._ledger.sweep_house(c.SweepHouse(f"sweep {currency} {period}", currency)))
        metrics.UNSWEPT.clear()
        for currency, kind, amount in unswept:
            metrics.UNSWEPT.labels(AccountKind(kind).name.lower(), currency).set(amount)
        return tuple(swept)

    async def _expire(self, reservation: c.Reservation) -> bool:
        name = reservation.reservation
        try:
            await self._ledger.expire_reservation(c.ExpireReservation(f"expire {name}", reservation.table, name))
        except Fault as fault:
            if fault.reason != "RESERVATION_CLOSED":
                raise
            return False
        return True


def _unswept(conn: Connection, limit: int) -> list[tuple[str, int, int]]:
    """(currency, kind, what its sub-accounts hold, in or out) where that is anything."""
    found = conn.execute(
        select(accounts.c.currency, accounts.c.kind, func.sum(func.abs(accounts.c.balance)))
        .where(_HOT, accounts.c.balance != 0, ~accounts.c.account.endswith(f"/{HEAD}"))
        .group_by(accounts.c.currency, accounts.c.kind)
        .order_by(accounts.c.currency, accounts.c.kind)
        .limit(limit)
    )
    return [(currency, kind, int(amount)) for currency, kind, amount in found]
