"""How a service calls another: one channel with its credentials, a deadline on every call, and bounded retries.

Every call in the house that changes something carries an id that makes it idempotent, which is why gRPC itself may
repeat one that found its server unavailable.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc

from services.runtime import tracing
from services.runtime.auth import service_metadata
from services.runtime.settings import ServiceSettings, is_loopback

CALL_TIMEOUT_SECONDS: Final = 5.0
RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
RECONNECT_FIRST_MS: Final = 100
RECONNECT_LAST_MS: Final = 1_000
KEEPALIVE_MS: Final = 20_000
KEEPALIVE_TIMEOUT_MS: Final = 5_000

SERVICE_CONFIG: Final = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 4,
                    "initialBackoff": "0.05s",
                    "maxBackoff": "0.5s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ],
        # While a server is ill, its callers' repeats must not add to its load.
        "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.5},
    }
)

_Metadata = tuple[tuple[str, str | bytes], ...]


def connect(
    target: str,
    settings: ServiceSettings,
    *,
    as_service: str | None = None,
    metadata: Sequence[tuple[str, str]] = (),
    timeout: float = CALL_TIMEOUT_SECONDS,
) -> grpc.aio.Channel:
    """A channel to `target`; nothing is connected yet.

    Each call carries the proof of `as_service` and `metadata`. A unary call without a timeout of its own gets
    `timeout` seconds; streams have none. Raises `ValueError` for plaintext to another machine.
    """
    options: list[tuple[str, Any]] = [
        ("grpc.service_config", SERVICE_CONFIG),
        ("grpc.enable_retries", 1),
        ("grpc.max_receive_message_length", RESPONSE_BYTES_MAX),
        ("grpc.initial_reconnect_backoff_ms", RECONNECT_FIRST_MS),
        ("grpc.min_reconnect_backoff_ms", RECONNECT_FIRST_MS),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_LAST_MS),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    fixed: _Metadata = tuple(metadata)
    if as_service is not None:
        fixed += service_metadata(settings, as_service)
    if settings.tls_cert is not None and settings.tls_key is not None and settings.tls_ca is not None:
        credentials = grpc.ssl_channel_credentials(
            settings.tls_ca.read_bytes(), settings.tls_key.read_bytes(), settings.tls_cert.read_bytes()
        )
        return HouseChannel(grpc.aio.secure_channel(target, credentials, options=options), fixed, timeout)
    if not is_loopback(target):
        raise ValueError(f"{target}: plaintext is for loopback only")
    return HouseChannel(grpc.aio.insecure_channel(target, options=options), fixed, timeout)


class HouseChannel(grpc.aio.Channel):
    """A channel that adds fixed metadata, and a deadline to each unary call that has none.

    A wrapper and not interceptors, which cost a call several times as much.
    """

    def __init__(self, inner: grpc.aio.Channel, metadata: _Metadata, timeout: float) -> None:
        self._inner = inner
        self._metadata = metadata
        self._timeout = timeout
        # Spans about to end: the loop alone would let their tasks go.
        self._ending: set[asyncio.Task[None]] = set()

    def _end_later(self, call: Any, end: Callable[[str], None]) -> None:
        task = asyncio.ensure_future(_end_span(call, end))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def __aenter__(self) -> HouseChannel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Closes the connection; calls at work have `grace` seconds to end."""
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The state of the connection."""
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Waits until the connection is in another state."""
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Waits until the connection is there."""
        await self._inner.channel_ready()

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        """A method with one request and one response; calls get the channel's deadline."""
        return self._calling(
            self._inner.unary_unary(*args, **kwargs), self._timeout, traced=str(args[0]) if args else ""
        )

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        """A method that answers with a stream."""
        return self._calling(self._inner.unary_stream(*args, **kwargs), None)

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        """A method that takes a stream."""
        return self._calling(self._inner.stream_unary(*args, **kwargs), None)

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        """A method with streams both ways."""
        return self._calling(self._inner.stream_stream(*args, **kwargs), None)

    def _calling(
        self, method: Callable[..., Any], default_timeout: float | None, traced: str = ""
    ) -> Callable[..., Any]:
        fixed = self._metadata

        def call(
            *request: Any, timeout: float | None = None, metadata: Sequence[tuple[str, str | bytes]] = (), **rest: Any
        ) -> Any:
            limit = default_timeout if timeout is None else timeout
            span = tracing.begin_call(traced) if traced else None
            if span is not None:
                parent, end = span
                made = method(
                    *request, timeout=limit, metadata=(*fixed, *(metadata or ()), (tracing.PARENT, parent)), **rest
                )
                made.add_done_callback(lambda call: self._end_later(call, end))
                return made
            return method(*request, timeout=limit, metadata=(*fixed, *(metadata or ())), **rest)

        return call


async def _end_span(call: Any, end: Callable[[str], None]) -> None:
    """A call's status is told by a coroutine, which has nothing to wait for once the call is done."""
    code = await call.code()
    end("" if code is grpc.StatusCode.OK else code.name)
