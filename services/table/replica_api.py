"""The processes of the table service over gRPC: who is there, and telling one to end."""

from __future__ import annotations

import re
from typing import Any, Final

import grpc
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as rpc

from services.runtime.auth import current_identity
from services.runtime.errors import Fault
from services.table import requests
from services.table.replicas import Replica, Replicas
from services.table.store import StoreUnavailableError

Context = grpc.aio.ServicerContext[Any, Any]

_NAME: Final = re.compile(r"replicas/([a-z0-9-]{1,64})")


class ReplicaApi(rpc.ReplicaServiceServicer):
    """`ReplicaService` of table_service.proto."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    async def ListReplicas(self, request: pb.ListReplicasRequest, context: Context) -> pb.ListReplicasResponse:
        """Lists the processes."""
        try:
            return pb.ListReplicasResponse(replicas=[_message(each) for each in await self._replicas.alive()])
        except StoreUnavailableError as error:
            raise _away() from error

    async def DrainReplica(self, request: pb.DrainReplicaRequest, context: Context) -> pb.DrainReplicaResponse:
        """Tells a process to end."""
        named = _NAME.fullmatch(request.name)
        if named is None:
            raise requests.invalid("name", "must be replicas/ and a process's id")
        reason = requests.reason(request.reason)
        try:
            replica = await self._replicas.drain(named[1], current_identity().id, reason)
        except StoreUnavailableError as error:
            raise _away() from error
        return pb.DrainReplicaResponse(replica=_message(replica))


def register(replicas: Replicas, server: grpc.aio.Server) -> str:
    """Adds the service to a server; returns its full name."""
    rpc.add_ReplicaServiceServicer_to_server(ReplicaApi(replicas), server)
    return pb.DESCRIPTOR.services_by_name["ReplicaService"].full_name


def _away() -> Fault:
    return Fault("SERVICE_UNAVAILABLE", "the tables' store cannot be reached")


def _message(replica: Replica) -> pb.Replica:
    message = pb.Replica(
        name=f"replicas/{replica.id}",
        tables=replica.facts.tables,
        draining=bool(replica.drain.by),
        drained_by=replica.drain.by,
        reason=replica.drain.reason,
    )
    message.start_time.FromMilliseconds(replica.facts.started_ms)
    message.beat_time.FromMilliseconds(replica.beat_ms)
    return message
