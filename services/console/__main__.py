"""Starts the console: settings, database, peers, page."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

import uvicorn

from services.console.app import make_app
from services.console.approvals import Approvals
from services.console.audit_log import AuditLog
from services.console.open_sessions import OpenSessions
from services.console.peers import Peers
from services.console.sessions import Sessions
from services.console.settings import ConsoleSettings
from services.console.stillness import Stillness
from services.console.web import Console, make_templates
from services.runtime import server, telemetry
from services.runtime.auth import Authenticator
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.metrics_page import serve_metrics
from services.runtime.sealing import KEY_BYTES, Sealer

STOP_SECONDS: Final = 2
VERIFY_SECONDS: Final = 60.0


async def main() -> None:
    """Runs until it is told to stop."""
    settings = ConsoleSettings.load()
    telemetry.configure_logging("console", level=settings.log_level, form=settings.log_format)
    clock = SystemClock()
    key = settings.console_key.get_secret_value() or secrets.token_hex(KEY_BYTES)
    sealer = Sealer([("console", bytes.fromhex(key))])
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        migrations_folder=settings.migrations,
    )
    await database.migrate("console")
    peers = Peers(settings)
    audit_log = AuditLog(database, clock)
    console = Console(
        Sessions(Authenticator(settings, clock), sealer, OpenSessions(database, clock), secure=settings.has_tls),
        peers,
        audit_log,
        Approvals(database, sealer, clock, settings.console_approval_seconds),
        clock,
        make_templates(),
        settings.console_streams_max,
        Stillness(clock),
    )
    _, stop_metrics = serve_metrics(settings)
    checking = asyncio.create_task(_check(audit_log, clock), name="audit log")
    try:
        await uvicorn.Server(configuration(settings, make_app(console))).serve()
    finally:
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)
        await peers.close()
        await database.close()
        await asyncio.to_thread(stop_metrics)


def configuration(settings: ConsoleSettings, app: Any) -> uvicorn.Config:
    """How the page is served: TLS where there is a certificate, no access log (addresses may name players)."""
    host, _, port = settings.listen.rpartition(":")
    tls: dict[str, Any] = {}
    if settings.has_tls:
        tls = {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key)}
    return uvicorn.Config(
        app,
        host=host.strip("[]"),
        port=int(port),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=STOP_SECONDS,
        **tls,
    )


async def _check(audit_log: AuditLog, clock: SystemClock) -> None:
    while True:
        await audit_log.verify()
        await clock.sleep(VERIFY_SECONDS)


if __name__ == "__main__":
    server.run(main())
