"""The page of a process's metrics, alike for services, workers and the console."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import prometheus_client

from services.runtime import telemetry
from services.runtime.settings import ServiceSettings


def serve_metrics(settings: ServiceSettings) -> tuple[int, Callable[[], None]]:
    """Serves the process's metrics over HTTP (over mutual TLS where there is a certificate), from a thread.

    Returns the port taken and what stops it; for processes that take no calls. Raises `OSError`.
    """
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

    bound = http.socket.getsockname() if isinstance(http.socket, socket.socket) else (host, port)
    return int(bound[1]), stop
