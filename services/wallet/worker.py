"""`python -m services.wallet.worker`: the Celery worker that checks the ledger, apart from the process that writes it.

The beat sends two tasks: `wallet.check_new_entries` every few seconds, which reads what was sealed since the last one,
and `wallet.audit_ledger` every hour, which reads everything. Their results are this process's metrics, and a fault
closes the ledger for new hands. One round at a time: two would only do the same.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from celery import Celery
from celery.signals import setup_logging

from services.runtime import telemetry
from services.runtime.clock import Clock, SystemClock
from services.runtime.database import Database
from services.runtime.metrics_page import serve_metrics
from services.runtime.tasks import AUDIT_LEDGER, CHECK_NEW_ENTRIES, LEDGER_QUEUE, TASK_LIMIT_SECONDS, make_app
from services.runtime.workers import keep_logging, worker_of
from services.wallet import metrics
from services.wallet.auditing import Auditor
from services.wallet.settings import WalletSettings

T = TypeVar("T")

POOL_SIZE: Final = 2

_UP: Final = telemetry.gauge("fivedraw_wallet_worker_up", "1 while the worker takes tasks.")
_FAILED: Final = telemetry.counter("fivedraw_wallet_audits_failed_total", "Checks and audits that did not end.")

_log = telemetry.logger("wallet.worker")


def add_tasks(app: Celery, auditor: Auditor, clock: Clock) -> None:
    """Registers the tasks with the application of a worker."""

    def check_new_entries() -> int:
        checked = _run(auditor.check_new)
        metrics.AUDIT_FAULTS.labels("new").set(len(checked.faults))
        metrics.UNCHECKED.set(checked.behind)
        if not checked.faults:
            metrics.CHECKED_SECONDS.set(clock.now_ms() / 1000)
        return checked.entries_checked

    def audit_ledger() -> int:
        report = _run(auditor.audit)
        metrics.AUDIT_FAULTS.labels("whole").set(len(report.faults))
        metrics.AUDITED_SECONDS.set(clock.now_ms() / 1000)
        return report.entries_checked

    app.task(name=CHECK_NEW_ENTRIES, shared=False)(check_new_entries)
    app.task(name=AUDIT_LEDGER, shared=False)(audit_ledger)


def main() -> int:
    """Takes tasks until it is told to stop; returns its exit status."""
    settings = WalletSettings.load()
    telemetry.configure_logging("wallet-worker", level=settings.log_level, form=settings.log_format)
    # Celery sets up logging of its own unless somebody is connected here.
    setup_logging.connect(keep_logging, weak=False)
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=POOL_SIZE,
        isolation="READ COMMITTED",
        migrations_folder=settings.migrations,
    )
    database.migrate_now("wallet")
    clock = SystemClock()
    app = make_app(settings.broker_url.get_secret_value(), consumes=LEDGER_QUEUE)
    add_tasks(app, Auditor(database, clock), clock)
    _, stop_metrics = serve_metrics(settings)
    _UP.set(1)
    worker = worker_of(app, settings, "wallet", LEDGER_QUEUE)
    try:
        worker.start()
    finally:
        _UP.set(0)
        database.close_now()
        stop_metrics()
    return int(worker.exitcode or 0)


def _run(work: Callable[[], Awaitable[T]]) -> T:
    """Runs a round in this thread within its task's limit; one that fails is counted, and the beat sends the next."""

    async def limited() -> T:
        async with asyncio.timeout(TASK_LIMIT_SECONDS[LEDGER_QUEUE]):
            return await work()

    try:
        return asyncio.run(limited())
    except BaseException as error:
        _FAILED.inc()
        _log.error("a check of the ledger did not end", error=f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    sys.exit(main())
