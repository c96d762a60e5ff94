"""The processes of the table service know of each other; one that is drained ends in order, and the others play on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc
import pytest
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as rpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime import server
from services.runtime.errors import Fault
from services.table import grpc_api, replica_api, replicas
from services.table.replicas import Replicas
from tests.servers import free_port


@pytest.fixture
def replica_stub(house, channel, token):
    """`replica_stub("olga", "operator")`: the processes as somebody sees them."""

    def open_as(who: str, *roles: str):
        return rpc.ReplicaServiceStub(channel(house.processes[0].server, token=token(who, *roles)))

    return open_as


async def reason_of(call) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return Fault.from_rpc(caught.value).reason


async def test_every_process_is_listed_by_all(house, replica_stub):
    second = await house.add_process()
    listed = (await replica_stub("vic", "viewer").ListReplicas(pb.ListReplicasRequest())).replicas
    ours = sorted(f"replicas/{each.replicas.id}" for each in (house.processes[0], second))
    assert [each.name for each in listed if each.name in ours] == ours
    assert not any(each.draining for each in listed if each.name in ours)


async def test_a_process_that_is_silent_is_gone_and_cannot_be_told(house, replica_stub, monkeypatch):
    monkeypatch.setattr(replicas, "GONE_MS", -1)
    listed = (await replica_stub("olga", "operator").ListReplicas(pb.ListReplicasRequest())).replicas
    assert list(listed) == []
    name = f"replicas/{house.processes[0].replicas.id}"
    call = replica_stub("olga", "operator").DrainReplica(pb.DrainReplicaRequest(name=name, reason="an upgrade"))
    assert await reason_of(call) == "REPLICA_NOT_FOUND"


async def test_only_an_operator_drains_and_says_why(house, replica_stub):
    name = f"replicas/{house.processes[0].replicas.id}"
    asked = pb.DrainReplicaRequest(name=name, reason="an upgrade")
    for role in ("viewer", "finance", "auditor", "player"):
        assert await reason_of(replica_stub("pat", role).DrainReplica(asked)) == "PERMISSION_DENIED"
    olga = replica_stub("olga", "operator")
    assert await reason_of(olga.DrainReplica(pb.DrainReplicaRequest(name=name))) == "INVALID_REQUEST"
    await house.processes[0].replicas.beat()
    assert not house.processes[0].replicas.told_to_end.is_set()


async def test_the_first_reason_stays(house, replica_stub):
    second = await house.add_process()
    olga = replica_stub("olga", "operator")
    for reason in ("an upgrade", "another reason"):
        asked = pb.DrainReplicaRequest(name=f"replicas/{second.replicas.id}", reason=reason)
        replica = (await olga.DrainReplica(asked)).replica
        assert (replica.draining, replica.drained_by, replica.reason) == (True, "olga", "an upgrade")


@asynccontextmanager
async def served(own: Replicas, settings, register) -> AsyncIterator[asyncio.Task[None]]:
    """The process as `services.table` serves it, until it is told to end."""
    beating: list[asyncio.Task[None]] = []

    async def on_start() -> None:
        beating.append(asyncio.create_task(own.run()))

    async def on_stop() -> None:
        beating[0].cancel()
        await asyncio.gather(*beating, return_exceptions=True)
        await own.leave()

    serving = asyncio.create_task(
        server.serve("table", settings, register, on_start=on_start, on_stop=on_stop, told_to_stop=own.told_to_end)
    )
    try:
        yield serving
    finally:
        own.told_to_end.set()
        await serving


async def test_a_drained_process_ends_in_order_and_its_tables_go_on_elsewhere(
    house, replica_stub, make_settings, channel, token
):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    process = await house.add_process()
    own = Replicas(process.store._redis, house.clock, lambda: process.house.tables_at_hand)
    target = f"127.0.0.1:{free_port()}"

    def register(grpc_server):
        return [
            *grpc_api.register(process.house, house.sealer, grpc_server),
            replica_api.register(own, grpc_server),
        ]

    async with served(own, make_settings(listen=target), register) as serving:
        opened = channel(target, token=token("wes", "player"))
        health = aiter(health_pb2_grpc.HealthStub(opened).Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True))
        assert (await anext(health)).status == health_pb2.HealthCheckResponse.SERVING
        watching = aiter(rpc.TableServiceStub(opened).WatchTable(pb.WatchTableRequest(table="tables/oak")))
        assert (await anext(watching)).HasField("snapshot")

        # Any process passes it on.
        asked = pb.DrainReplicaRequest(name=f"replicas/{own.id}", reason="an upgrade")
        assert (await replica_stub("olga", "operator").DrainReplica(asked)).replica.draining
        states = []
        with suppress(grpc.aio.AioRpcError):
            async for answer in health:
                states.append(answer.status)
        assert states == [health_pb2.HealthCheckResponse.NOT_SERVING]

        async def until_ended() -> None:
            async for _ in watching:
                pass

        assert await reason_of(until_ended()) == "SERVICE_UNAVAILABLE"
        async with asyncio.timeout(20):
            await serving
        left = (await replica_stub("olga", "operator").ListReplicas(pb.ListReplicasRequest())).replicas
        assert asked.name not in [each.name for each in left]
        assert await house.play_hand("oak", "ann", "bob") >= 1
