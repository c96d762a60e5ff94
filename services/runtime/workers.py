"""What every Celery worker of the house does alike: its metrics' page, and its logging."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import prometheus_client

from services.runtime import telemetry
from services.runtime.settings import ServiceSettings


def serve_metrics(settings: ServiceSettings) -> Callable[[], None]:
    """Serves the process's metrics on `metrics_listen`, with mutual TLS where there is any; returns what ends it."""
    host, _, port = settings.metrics_listen.rpartition(":")
    tls: dict[str, Any] = {}
    if settings.has_tls:
        tls = {
            "certfile": str(settings.tls_cert),
            "keyfile": str(settings.tls_key),
            "client_cafile": str(settings.tls_ca),
            "client_auth_required": True,
        }
    http, thread = prometheus_client.start_http_server(
        int(port), host.strip("[]"), registry=telemetry.REGISTRY_OF_PROCESS, **tls
    )

    def stop() -> None:
        http.shutdown()
        http.server_close()
        thread.join()

    return stop


def keep_logging(**_: Any) -> None:
    """Leaves logging as `telemetry` set it up; Celery's lines for each task say less than the metrics do."""
    for chatty in ("celery.worker.strategy", "celery.app.trace", "celery.beat"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
