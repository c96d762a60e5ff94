"""What every Celery worker of the house does alike: how it takes tasks, and its logging."""

from __future__ import annotations

import logging
import socket
from typing import Any

from celery import Celery

from services.runtime.settings import ServiceSettings


def keep_logging(**_: Any) -> None:
    """Leaves logging as `telemetry` set it up; Celery's lines for each task say less than the metrics do."""
    for chatty in ("celery.worker.strategy", "celery.app.trace", "celery.beat"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def worker_of(app: Celery, settings: ServiceSettings, name: str, queue: str, *, concurrency: int = 1) -> Any:
    """A worker on threads for one queue, called `name` at its host; `start` runs it until it is told to stop.

    Workers of the house do not talk to each other: there is nothing that one needs of another.
    """
    return app.Worker(
        pool="threads",
        concurrency=concurrency,
        queues=[queue],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel=settings.log_level.upper(),
        hostname=f"{name}@{socket.gethostname()}",
        quiet=True,
    )
