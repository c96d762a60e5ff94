"""How a service serves: one gRPC server behind the gate, health, reflection, metrics over HTTP, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from services.runtime import telemetry, tracing
from services.runtime.clock import Clock, SystemClock
from services.runtime.gate import Gate
from services.runtime.metrics_page import serve_metrics
from services.runtime.settings import ServiceSettings

T = TypeVar("T")

RESPONSE_BYTES_MAX: Final = 4 * 1024 * 1024
METADATA_BYTES_MAX: Final = 16 * 1024
PING_INTERVAL_MIN_MS: Final = 10_000
KEEPALIVE_MS: Final = 30_000
KEEPALIVE_TIMEOUT_MS: Final = 10_000

# Adds the service's servicers to the server and returns their full names, for health and reflection.
Register = Callable[[grpc.aio.Server], Sequence[str]]
Hook = Callable[[], Awaitable[None]]

_UP = telemetry.gauge("fivedraw_service_up", "1 while the service takes calls.", ("service",))


@dataclass(slots=True)
class RunningServer:
    """A server that takes calls. `port` and `metrics_port` are those really taken (settings may say 0)."""

    name: str
    port: int
    metrics_port: int
    _server: grpc.aio.Server
    _gate: Gate
    _health: HealthServicer
    _metrics: Callable[[], None] | None
    _drain_seconds: float

    async def stop(self) -> None:
        """Takes no further calls, ends the streams with a reason, lets the calls at work finish, then closes."""
        _UP.labels(self.name).set(0)
        await self._health.enter_graceful_shutdown()
        self._gate.end_streams()
        await self._server.stop(self._drain_seconds)
        if self._metrics is not None:
            await asyncio.to_thread(self._metrics)


async def start(
    name: str,
    settings: ServiceSettings,
    register: Register,
    *,
    clock: Clock | None = None,
    with_metrics: bool = True,
) -> RunningServer:
    """Starts a server for `register`'s servicers; tests use it to run one in process on port 0.

    Raises `OSError` when the address cannot be taken.
    """
    gate = Gate(settings, clock or SystemClock())
    server = grpc.aio.server(
        interceptors=[gate],
        options=_options(settings),
        maximum_concurrent_rpcs=settings.calls_at_once_max,
    )
    services = list(register(server))
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    if settings.reflection:
        names = [*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, server)
    port = _bind(server, settings)
    await server.start()
    for service in ("", *services):
        await health.set(service, health_pb2.HealthCheckResponse.SERVING)
    _UP.labels(name).set(1)
    metrics_port, stop_metrics = serve_metrics(settings) if with_metrics else (0, None)
    return RunningServer(name, port, metrics_port, server, gate, health, stop_metrics, settings.drain_ms / 1000)


async def serve(
    name: str,
    settings: ServiceSettings,
    register: Register,
    *,
    on_start: Hook | None = None,
    on_stop: Hook | None = None,
    clock: Clock | None = None,
    told_to_stop: asyncio.Event | None = None,
) -> None:
    """Runs the service until SIGTERM, SIGINT or `told_to_stop`: `on_start`, calls, then a drain, then `on_stop`.

    `on_start` runs before the first call is taken (migrations, connections, sweepers); `on_stop` after the last one.
    """
    telemetry.configure_logging(name, level=settings.log_level, form=settings.log_format)
    tracing.configure(name, settings)
    log = telemetry.logger("runtime.server")
    stopping = told_to_stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    try:
        if on_start is not None:
            await on_start()
        server = await start(name, settings, register, clock=clock)
        # What the start has made stays; a full collection that walked it held every call up for some 50 ms.
        gc.collect()
        gc.freeze()
        log.info("serving", port=server.port, metrics_port=server.metrics_port, environment=settings.environment)
        await stopping.wait()
        log.info("stopping")
        await server.stop()
    finally:
        if on_stop is not None:
            await on_stop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
    log.info("stopped")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a service's main coroutine on uvloop where it is installed, else on asyncio's own loop."""
    try:
        import uvloop  # noqa: PLC0415 - absent on some platforms
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def _options(settings: ServiceSettings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.request_bytes_max),
        ("grpc.max_send_message_length", RESPONSE_BYTES_MAX),
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        # Two processes on one port would share its calls without saying so.
        ("grpc.so_reuseport", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MIN_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    ]


def _bind(server: grpc.aio.Server, settings: ServiceSettings) -> int:
    try:
        if settings.tls_cert is None or settings.tls_key is None or settings.tls_ca is None:
            port = server.add_insecure_port(settings.listen)
        else:
            # Every peer shows a certificate: services their own, people's calls that of the proxy they came through.
            credentials = grpc.ssl_server_credentials(
                [(settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())],
                root_certificates=settings.tls_ca.read_bytes(),
                require_client_auth=True,
            )
            port = server.add_secure_port(settings.listen, credentials)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {settings.listen}: {error}") from error
    if port == 0:
        raise OSError(f"cannot listen on {settings.listen}")
    return port
