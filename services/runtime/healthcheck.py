"""`python -m services.runtime.healthcheck [--metrics]`: exit status 0 while the service in this container is well.

It asks the gRPC health service on the port of `FIVEDRAW_LISTEN`; with `--metrics`, for processes that take no calls,
the metrics endpoint on the port of `FIVEDRAW_METRICS_LISTEN`. It shows the service's own certificate.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import urllib.request
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.channel import connect
from services.runtime.settings import ServiceSettings

TIMEOUT_SECONDS: Final = 3.0


def main(arguments: list[str]) -> int:
    """Checks once and returns the exit status."""
    settings = ServiceSettings.load()
    if arguments == ["--metrics"]:
        return 0 if _metrics_answer(settings) else 1
    return 0 if asyncio.run(_is_serving(settings)) else 1


async def _is_serving(settings: ServiceSettings) -> bool:
    async with connect(f"localhost:{_port(settings.listen)}", settings, timeout=TIMEOUT_SECONDS) as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        except grpc.aio.AioRpcError as error:
            sys.stderr.write(f"{error.code().name}: {error.details()}\n")
            return False
    is_serving: bool = answer.status == health_pb2.HealthCheckResponse.SERVING
    return is_serving


def _metrics_answer(settings: ServiceSettings) -> bool:
    url = f"http://localhost:{_port(settings.metrics_listen)}/metrics"
    context = None
    if settings.tls_cert is not None and settings.tls_key is not None:
        url = url.replace("http:", "https:", 1)
        context = ssl.create_default_context(cafile=settings.tls_ca)
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS, context=context) as answer:  # noqa: S310 - fixed
            status: int = answer.status
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return False
    return status == 200


def _port(address: str) -> str:
    return address.rpartition(":")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
