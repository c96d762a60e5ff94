"""Seals what is committed, watches the totals, checks what is new and audits all of it."""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.database import Database, DatabaseBusyError
from services.wallet import audit, chain, checking, closures, metrics, reads
from services.wallet import commands as c

# How many seals one round may add before it lets others write.
SEALS_PER_ROUND_MAX: Final = 20

# The totals read every account.
WATCH_INTERVAL_SECONDS: Final = 5.0

_log = telemetry.logger("wallet.auditing")


class Auditor:
    """The ledger's own auditor. A fault closes the ledger for new hands; a clean audit of all of it opens it again.

    The wallet's process seals and watches (`run`); checks and audits are a worker's, sent by the beat.
    """

    def __init__(self, db: Database, clock: Clock, *, seal_interval_ms: int = 1_000) -> None:
        self._db = db
        self._clock = clock
        self._seal_interval_seconds = seal_interval_ms / 1000

    async def run(self) -> None:
        """Seals, and watches the totals, until cancelled."""
        next_watch = 0.0
        while True:
            await self._clock.sleep(self._seal_interval_seconds)
            try:
                await self.seal()
                if self._clock.monotonic() >= next_watch:
                    await self.watch()
                    next_watch = self._clock.monotonic() + WATCH_INTERVAL_SECONDS
            except (DBAPIError, DatabaseBusyError) as error:
                # The database is away; what was not sealed now is sealed in the next round.
                _log.warning("could not seal or watch", error=str(error))

    async def seal(self) -> str:
        """Seals what is committed; returns the chain's head in hex. Another process may do the same at once."""
        up_to = await self._db.read(chain.last_batch)
        await self._db.write(chain.wait_for_writers)
        for _ in range(SEALS_PER_ROUND_MAX):
            seal = await self._db.read(chain.next_seal, up_to, self._clock.now_ms())
            if seal is None:
                break
            try:
                await self._db.write(chain.add_seal, seal)
            except IntegrityError:
                # Another process sealed the same; go on from its seal.
                continue
            metrics.SEALED_BATCH.set(seal.last_batch)
            _log.info("sealed", seal=seal.seal_no, last_batch=seal.last_batch, head=seal.head)
        newest = await self._db.read(chain.last_seal)
        return newest.head if newest else chain.GENESIS

    async def watch(self) -> c.LedgerSummary:
        """Shows the totals as metrics; an imbalance closes the ledger for new hands at once."""
        summary = await self._db.read(reads.summary)
        metrics.show_summary(summary)
        metrics.show_closures(await self._db.read(closures.closures))
        for balance in summary.imbalance:
            if balance.amount_minor:
                await self._close(f"SUM_NOT_ZERO: {balance.currency} is off by {balance.amount_minor}")
        return summary

    async def audit(self, published_head: str = "") -> c.AuditReport:
        """Audits everything on one snapshot, and closes or reopens the ledger by what it found."""
        report, closed = await self._db.read(examine, published_head)
        if report.clean:
            for table, reason in closed.items():
                _log.warning("a clean audit opens again", table=table, was_closed_by=reason)
            await self._db.write(closures.reopen, closed, self._clock.now_ms())
        else:
            await self._close(report.faults[0])
        return report

    async def check_new(self) -> checking.Checked:
        """Checks what was sealed since the last check, a bounded piece of it; a fault closes the ledger."""
        checked = await self._db.read(checking.check_new)
        if checked.faults:
            await self._close(checked.faults[0])
        elif checked.last_batch > checked.after:
            # Where another process has checked the same, its books are as good.
            await self._db.write(checking.move_on, checked)
        return checked

    async def _close(self, reason: str) -> None:
        _log.critical("the ledger is closed for new hands", reason=reason)
        await self._db.write(closures.close_ledger, reason)


async def end(task: asyncio.Task[None]) -> None:
    """Cancels the auditor's task and waits for its end; what it raised before is raised here."""
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise


def examine(conn: Connection, published_head: str) -> tuple[c.AuditReport, dict[str, str]]:
    """Audits everything in the connection's snapshot; with what was closed then, which a clean audit may open."""
    return audit.examine(conn, published_head), closures.closures(conn)
