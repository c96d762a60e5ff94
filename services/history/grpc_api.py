"""`HistoryService` over gRPC: requests in, `reading.HandReader` asked, answers out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
from fivedraw.history.v1 import history_service_pb2 as pb
from fivedraw.history.v1 import history_service_pb2_grpc as pb_grpc

from services.history.reading import HandReader
from services.runtime.auth import current_identity

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["HistoryService"].full_name

# Errors are `Fault`s that the gate turns into statuses; the context is not needed.
_Context = grpc.aio.ServicerContext[Any, Any]


class HistoryServicer(pb_grpc.HistoryServiceServicer):
    """The history for clients; who may call what stands in `runtime.access`."""

    def __init__(self, reader: HandReader) -> None:
        self._reader = reader

    async def GetHand(self, request: pb.GetHandRequest, context: _Context) -> pb.GetHandResponse:
        """Reads one hand."""
        hand = await self._reader.get_hand(current_identity(), request.name, with_proof=request.with_proof)
        return pb.GetHandResponse(hand=hand)

    async def ListHands(self, request: pb.ListHandsRequest, context: _Context) -> pb.ListHandsResponse:
        """Lists hands."""
        return await self._reader.list_hands(current_identity(), request)

    async def ExportHand(self, request: pb.ExportHandRequest, context: _Context) -> pb.ExportHandResponse:
        """Writes one hand as text."""
        text = await self._reader.export_hand(
            current_identity(), request.name, request.format, with_proof=request.with_proof
        )
        return pb.ExportHandResponse(text=text)

    async def ExportHands(
        self, request: pb.ExportHandsRequest, context: _Context
    ) -> AsyncIterator[pb.ExportHandsResponse]:
        """Writes a range of hands."""
        async for piece in self._reader.export_hands(current_identity(), request):
            yield piece

    async def ReplayHand(
        self, request: pb.ReplayHandRequest, context: _Context
    ) -> AsyncIterator[pb.ReplayHandResponse]:
        """Plays a hand again."""
        replay = await self._reader.replay_hand(current_identity(), request.name)
        for message in replay.messages():
            yield message

    async def GetPlayerStatistics(
        self, request: pb.GetPlayerStatisticsRequest, context: _Context
    ) -> pb.GetPlayerStatisticsResponse:
        """Sums up a player's hands."""
        return await self._reader.player_statistics(current_identity(), request)

    async def ListAuditReads(self, request: pb.ListAuditReadsRequest, context: _Context) -> pb.ListAuditReadsResponse:
        """Lists audit reads."""
        return await self._reader.list_audit_reads(request)


def add_to(server: grpc.aio.Server, reader: HandReader) -> list[str]:
    """Adds the service to a server and returns its full name, for health and reflection."""
    pb_grpc.add_HistoryServiceServicer_to_server(HistoryServicer(reader), server)
    return [SERVICE_NAME]
