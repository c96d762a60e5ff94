"""What the history asks when a log is lost: which tables there are, and what the ledger knows of a hand."""

from __future__ import annotations

from typing import Final

import grpc
from fivedraw.history.v1 import record_pb2
from fivedraw.table.v1 import table_pb2, table_service_pb2, table_service_pb2_grpc
from fivedraw.wallet.v1 import wallet_service_pb2, wallet_service_pb2_grpc

from services.history.names import HandKey
from services.history.peers import CALL_TIMEOUT_SECONDS
from services.runtime.errors import Fault

TABLES_PAGE: Final = 200


class TableRows:
    """`reconciling.TableList` over gRPC. A failed call raises `grpc.aio.AioRpcError`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = table_service_pb2_grpc.TableServiceStub(channel)

    async def page(self, token: str) -> tuple[list[table_pb2.Table], str]:
        """At most `TABLES_PAGE` tables by name, closed ones too, and the token of the next page; empty at the end."""
        request = table_service_pb2.ListTablesRequest(page_size=TABLES_PAGE, page_token=token, show_closed=True)
        answer = await self._stub.ListTables(request, timeout=CALL_TIMEOUT_SECONDS)
        return list(answer.tables), answer.next_page_token


class LedgerHands:
    """`writing.LedgerReader` over gRPC. A failed call raises `grpc.aio.AioRpcError`, or `Fault` for our reasons."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = wallet_service_pb2_grpc.WalletServiceStub(channel)

    async def read(self, key: HandKey) -> record_pb2.LedgerHand | None:
        """What the ledger knows of a hand; None if it never saw it. Its close time is not set while it is open."""
        request = wallet_service_pb2.GetHandRequest(table=key.table, hand=key.hand)
        try:
            answer = await self._stub.GetHand(request, timeout=CALL_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            fault = Fault.from_rpc(error)
            if fault is None:
                raise
            if fault.reason == "HAND_NOT_FOUND":
                return None
            raise fault from error
        return _as_stored(answer.hand)


def _as_stored(hand: wallet_service_pb2.LedgerHand) -> record_pb2.LedgerHand:
    stored = record_pb2.LedgerHand(
        hand=hand.hand,
        epoch=hand.epoch,
        void=hand.outcome == wallet_service_pb2.HAND_OUTCOME_VOID,
        open_time=hand.open_time,
        rake_minor=hand.rake_minor,
        carry_in_minor=hand.carry_in_minor,
        carry_out_minor=hand.carry_out_minor,
        reason=hand.reason,
    )
    if hand.outcome != wallet_service_pb2.HAND_OUTCOME_OPEN:
        stored.close_time.CopyFrom(hand.close_time)
    for each in hand.sittings:
        stored.seats.add(
            seat=each.seat,
            player=each.player,
            sitting=each.sitting,
            paid_minor=each.ante_minor + each.blind_minor + each.bet_minor - each.returned_minor,
            won_minor=each.won_minor,
        )
    return stored
