"""Waits until a house's services take calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.cli.house.folder import FolderError
from services.cli.house.ports import address
from services.cli.house.supervision import Supervisor

# A busy machine takes a minute to start seven Python processes; one that died is noticed at once.
READY_SECONDS: Final = 300.0
PROBE_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.1


async def await_ready(supervisor: Supervisor, services: Mapping[str, int]) -> None:
    """Returns when every service, named with its port, answers its health check with SERVING.

    Raises `FolderError` when the process manager has given a process up, or after 300 seconds with the names of those
    that do not answer.
    """
    waited_for = set(services)

    async def answers(name: str, port: int) -> None:
        await _await_serving(supervisor, port)
        waited_for.discard(name)

    try:
        async with asyncio.timeout(READY_SECONDS):
            await asyncio.gather(*(answers(name, port) for name, port in services.items()))
    except TimeoutError as late:
        names = ", ".join(sorted(waited_for))
        raise FolderError(f"{names}: no answer within {READY_SECONDS:.0f} s; see logs in the data folder") from late


def given_up(supervisor: Supervisor) -> list[str]:
    """Names of processes that the process manager starts no more."""
    return [status.name for status in supervisor.statuses() if status.state == "FATAL"]


async def _await_serving(supervisor: Supervisor, port: int) -> None:
    async with grpc.aio.insecure_channel(address(port), options=[("grpc.max_reconnect_backoff_ms", 500)]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while not await _is_serving(stub):
            lost = await asyncio.to_thread(given_up, supervisor)
            if lost:
                raise FolderError(f"{', '.join(lost)} cannot be started: see the logs")
            await asyncio.sleep(PAUSE_SECONDS)


async def _is_serving(stub: health_pb2_grpc.HealthStub) -> bool:
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=PROBE_SECONDS)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
