"""`python -m services.history.beat`: sends the periodic tasks of history and wallet.

A second one does no harm, only more work.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from celery import Celery
from celery.signals import setup_logging

from services.history.settings import HistorySettings
from services.runtime import telemetry
from services.runtime.tasks import (
    AUDIT_LEDGER,
    AUDIT_ROWS,
    CHECK_NEW_ENTRIES,
    DELETE_OLD_HANDS,
    EXPORT_DAY,
    QUEUE_OF_TASK,
    RECONCILE_HANDS,
    RESEND_UNWRITTEN,
    make_app,
)
from services.runtime.workers import keep_logging

UPKEEP_EVERY_SECONDS: Final = 3600
CHECK_EVERY_SECONDS: Final = 5
AUDIT_EVERY_SECONDS: Final = 3600
LOOK_EVERY_SECONDS: Final = 5


def schedule(settings: HistorySettings) -> dict[str, dict[str, Any]]:
    """What is sent how often. Each task is worth nothing once the next one is sent, so it then expires."""
    every = {
        RESEND_UNWRITTEN: settings.history_resend_every_seconds,
        RECONCILE_HANDS: settings.history_reconcile_every_seconds,
        # The wallet's worker takes these.
        CHECK_NEW_ENTRIES: CHECK_EVERY_SECONDS,
        AUDIT_LEDGER: AUDIT_EVERY_SECONDS,
    }
    # What no worker would take must not pile up in the broker, so these are sent only where they are asked for.
    if settings.history_retention_days:
        every[DELETE_OLD_HANDS] = UPKEEP_EVERY_SECONDS
    if settings.history_export_days:
        every[EXPORT_DAY] = UPKEEP_EVERY_SECONDS
    if settings.history_audit_rows:
        every[AUDIT_ROWS] = UPKEEP_EVERY_SECONDS
    return {
        task: {
            "task": task,
            "schedule": seconds,
            "options": {"queue": QUEUE_OF_TASK[task], "expires": seconds, "ignore_result": True},
        }
        for task, seconds in every.items()
    }


def make_beat_app(settings: HistorySettings) -> Celery:
    """The Celery application with the schedule."""
    app = make_app(settings.broker_url.get_secret_value())
    app.conf.beat_schedule = schedule(settings)
    app.conf.beat_max_loop_interval = LOOK_EVERY_SECONDS
    return app


def main() -> int:
    """Runs until it is told to stop."""
    settings = HistorySettings.load()
    telemetry.configure_logging("history-beat", level=settings.log_level, form=settings.log_format)
    setup_logging.connect(keep_logging, weak=False)
    beat = make_beat_app(settings).Beat(loglevel=settings.log_level.upper(), quiet=True)
    beat.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
