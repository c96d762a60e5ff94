"""Connections to Redis: bounded in number and in time, with backoff after a lost server."""

from __future__ import annotations

from typing import Final

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff

CONNECT_TIMEOUT_SECONDS: Final = 2.0
COMMAND_TIMEOUT_SECONDS: Final = 5.0
POOL_WAIT_SECONDS: Final = 2.0
HEALTH_CHECK_SECONDS: Final = 15
RETRIES_MAX: Final = 3
BACKOFF_FIRST_SECONDS: Final = 0.02
BACKOFF_LAST_SECONDS: Final = 0.5


def connect(
    url: str,
    *,
    pool_size: int = 64,
    command_timeout: float = COMMAND_TIMEOUT_SECONDS,
    retries: int = RETRIES_MAX,
    ca_file: str | None = None,
) -> Redis:
    """A client for `url` (`redis://` or `rediss://`); nothing is connected yet, and answers are bytes.

    A command is repeated after a lost connection, so its effect may happen twice: scripts that must not be are guarded
    by what they check (epoch, version, commit id), and others take `retries=0`. A caller waits for a free connection
    at most `POOL_WAIT_SECONDS`, then gets `redis.exceptions.ConnectionError`.
    """
    options: dict[str, object] = {}
    if url.startswith("rediss://") and ca_file is not None:
        options["ssl_ca_certs"] = ca_file
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=pool_size,
        timeout=POOL_WAIT_SECONDS,
        socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
        socket_timeout=command_timeout,
        socket_keepalive=True,
        health_check_interval=HEALTH_CHECK_SECONDS,
        retry=Retry(
            ExponentialWithJitterBackoff(base=BACKOFF_FIRST_SECONDS, cap=BACKOFF_LAST_SECONDS),
            retries,
            (exceptions.ConnectionError, exceptions.TimeoutError),
        ),
        **options,
    )
    return Redis.from_pool(pool)
