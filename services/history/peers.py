"""The services that the history asks: the table's log of finished hands, and the deck's proofs."""

from __future__ import annotations

from typing import Final

import grpc
from fivedraw.deck.v1 import deck_service_pb2, deck_service_pb2_grpc
from fivedraw.table.v1 import table_service_pb2, table_service_pb2_grpc

from services.history.names import NAME_CHARACTERS_MAX
from services.history.writing import FinishedHand, HandLog
from services.runtime.errors import Fault

CALL_TIMEOUT_SECONDS: Final = 5.0


class TableLog:
    """`writing.HandLogReader` over gRPC. A failed call raises `grpc.aio.AioRpcError`, or `Fault` for our reasons."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = table_service_pb2_grpc.TableLogServiceStub(channel)

    async def read(self, hand: FinishedHand) -> HandLog | None:
        """All events of a finished hand; None if the table has no log of it."""
        request = table_service_pb2.ReadHandLogRequest(hand=_named(hand))
        try:
            answer = await self._stub.ReadHandLog(request, timeout=CALL_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            fault = Fault.from_rpc(error)
            if fault is None:
                raise
            if fault.reason in ("HAND_NOT_FOUND", "TABLE_NOT_FOUND"):
                return None
            raise fault from error
        return HandLog(answer.table, answer.events)

    async def confirm(self, hand: FinishedHand) -> None:
        """Says that the history is stored."""
        request = table_service_pb2.ConfirmHandWrittenRequest(hand=_named(hand))
        try:
            await self._stub.ConfirmHandWritten(request, timeout=CALL_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            fault = Fault.from_rpc(error)
            # A table that knows neither hand nor epoch any more has nothing left to confirm.
            if fault is None or fault.reason not in ("HAND_NOT_FOUND", "STALE_EPOCH"):
                raise

    async def list_unwritten(self, older_than_seconds: int, limit: int) -> list[FinishedHand]:
        """Finished hands that were not confirmed, oldest first."""
        request = table_service_pb2.ListUnwrittenHandsRequest(page_size=limit, older_than_seconds=older_than_seconds)
        answer = await self._stub.ListUnwrittenHands(request, timeout=CALL_TIMEOUT_SECONDS)
        return [
            FinishedHand(hand.table, hand.epoch, hand.hand)
            for hand in answer.hands
            if len(hand.table) <= NAME_CHARACTERS_MAX
        ]


class DeckProofs:
    """`reading.ProofReader` over gRPC."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = deck_service_pb2_grpc.DeckServiceStub(channel)

    async def read(
        self, request: deck_service_pb2.GetFairnessProofRequest
    ) -> deck_service_pb2.GetFairnessProofResponse:
        """The proof asked for. Raises `Fault` as the deck service does, SERVICE_UNAVAILABLE if it is away."""
        try:
            answer: deck_service_pb2.GetFairnessProofResponse = await self._stub.GetFairnessProof(
                request, timeout=CALL_TIMEOUT_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            fault = Fault.from_rpc(error)
            raise fault or Fault("SERVICE_UNAVAILABLE", "the deck service does not answer") from error
        return answer


def _named(hand: FinishedHand) -> table_service_pb2.UnwrittenHand:
    return table_service_pb2.UnwrittenHand(table=hand.table, epoch=hand.epoch, hand=hand.hand)
