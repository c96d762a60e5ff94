"""`python -m services.history.worker [write|exports|audits]`: a Celery worker for one of the history's queues.

Its pool is threads, whose work goes to one event loop, so one process has one set of metrics and one SQL writer.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from celery import Celery
from celery.signals import setup_logging

from services.history.ledger import LedgerHands, TableRows
from services.history.peers import TableLog
from services.history.pipeline import LoopThread, Pipeline, add_tasks
from services.history.reading import HandReader
from services.history.reconciling import Reconciler
from services.history.settings import HistorySettings
from services.history.upkeep import Upkeep
from services.history.viewing import NoKeys
from services.history.writing import HandWriter
from services.runtime import telemetry, tracing
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.metrics_page import serve_metrics
from services.runtime.tasks import AUDITS_QUEUE, EXPORTS_QUEUE, WRITE_QUEUE, make_app
from services.runtime.workers import keep_logging, worker_of

QUEUE_OF: Final = {"write": WRITE_QUEUE, "exports": EXPORTS_QUEUE, "audits": AUDITS_QUEUE}
START_SECONDS: Final = 60.0

_UP: Final = telemetry.gauge("fivedraw_history_worker_up", "1 while the worker takes tasks.", ("queue",))


def main(arguments: list[str]) -> int:
    """Runs a worker until it is told to stop; returns its exit status."""
    kind = arguments[0] if arguments else "write"
    if kind not in QUEUE_OF or len(arguments) > 1:
        sys.stderr.write(f"usage: python -m services.history.worker [{'|'.join(QUEUE_OF)}]\n")
        return 2
    settings = HistorySettings.load()
    telemetry.configure_logging("history-worker", level=settings.log_level, form=settings.log_format)
    tracing.configure("history-worker", settings)
    tracing.follow_tasks()
    # Celery sets up logging of its own unless somebody is connected here.
    setup_logging.connect(keep_logging, weak=False)
    app = make_app(settings.broker_url.get_secret_value(), consumes=QUEUE_OF[kind])
    return work(app, settings, kind)


def work(app: Celery, settings: HistorySettings, kind: str) -> int:
    """Opens the stores and peers, takes tasks until the worker is stopped, and closes them."""
    loop = LoopThread()
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        isolation="READ COMMITTED",
        migrations_folder=settings.migrations,
    )
    clock = SystemClock()
    log = telemetry.logger("history.worker")

    async def open_channels() -> list[Any]:
        await database.migrate("history")
        peers = (settings.table_address, settings.wallet_address)
        return [connect(address, settings, as_service="history") for address in peers]

    table, wallet = loop.run(open_channels, START_SECONDS)
    ledger = LedgerHands(wallet)
    writer = HandWriter(database, TableLog(table), clock, ledger)
    pipeline = Pipeline(app, writer, clock, settings)
    reconciler = Reconciler(database, TableRows(table), ledger, writer, clock=clock, settings=settings)
    # A worker carries sealed parts and never opens one, so it is given no key.
    reader = HandReader(database, NoKeys(), clock)
    add_tasks(app, pipeline, reconciler, Upkeep(database, reader, clock, settings), loop)
    _, stop_metrics = serve_metrics(settings)
    _UP.labels(kind).set(1)
    log.info("working", queue=QUEUE_OF[kind])
    concurrency = settings.history_write_concurrency if kind == "write" else 1
    worker = worker_of(app, settings, f"history-{kind}", QUEUE_OF[kind], concurrency=concurrency)
    try:
        worker.start()
    finally:
        _UP.labels(kind).set(0)
        for channel in (table, wallet):
            loop.run(channel.close, START_SECONDS)
        loop.run(database.close, START_SECONDS)
        loop.stop()
        stop_metrics()
    log.info("stopped", queue=QUEUE_OF[kind])
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
