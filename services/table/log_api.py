"""The log of finished hands, for the history worker."""

from __future__ import annotations

from typing import Any, Final

import grpc
from fivedraw.table.v1 import event_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as rpc

from services.runtime.errors import Fault
from services.runtime.sealing import Sealer, event_aad
from services.table import requests, words
from services.table.bus import Batch, public_event, stamp
from services.table.house import House
from services.table.line import EVENT_PAD_BYTES
from services.table.store import StoreUnavailableError

LOG_EVENTS_MAX: Final = 4_000
KEEP_BATCHES: Final = 200
PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 1_000

Context = grpc.aio.ServicerContext[Any, Any]


class LogApi(rpc.TableLogServiceServicer):
    """`TableLogService` of table_service.proto."""

    def __init__(self, house: House, sealer: Sealer) -> None:
        self._house = house
        self._sealer = sealer

    async def ReadHandLog(self, request: pb.ReadHandLogRequest, context: Context) -> pb.ReadHandLogResponse:
        """All events of one finished hand."""
        table_id, epoch, hand = _hand(request.hand)
        host = await self._house.host(table_id)
        state, _ = await host.view_state(fresh=False)
        try:
            place = await self._house.store.find_unwritten(table_id, epoch, hand)
            if place is None:
                raise Fault("HAND_NOT_FOUND", f"hand {hand} of {state.name} is not due", hand=str(hand))
            batches = await self._house.store.read_from(table_id, place.first_epoch, place.first, LOG_EVENTS_MAX)
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        events = [event for batch in batches for event in self._of_hand(state.name, batch, hand)]
        return pb.ReadHandLogResponse(events=events, table=words.table(state))

    async def ConfirmHandWritten(
        self, request: pb.ConfirmHandWrittenRequest, context: Context
    ) -> pb.ConfirmHandWrittenResponse:
        """A hand's history is stored."""
        table_id, epoch, hand = _hand(request.hand)
        try:
            await self._house.store.confirm_written(table_id, epoch, hand, KEEP_BATCHES)
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        return pb.ConfirmHandWrittenResponse()

    async def ListUnwrittenHands(
        self, request: pb.ListUnwrittenHandsRequest, context: Context
    ) -> pb.ListUnwrittenHandsResponse:
        """Finished hands whose history is due."""
        if not 0 <= request.page_size <= PAGE_MAX:
            raise requests.invalid("page_size", f"must be from 0 to {PAGE_MAX}")
        if request.older_than_seconds < 0:
            raise requests.invalid("older_than_seconds", "must not be negative")
        size = request.page_size or PAGE_DEFAULT
        try:
            waiting = await self._house.store.list_unwritten(size, request.older_than_seconds * 1000)
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        hands = [
            pb.UnwrittenHand(table=f"tables/{each.table_id}", epoch=each.epoch, hand=each.hand) for each in waiting
        ]
        return pb.ListUnwrittenHandsResponse(hands=hands)

    def _of_hand(self, table: str, batch: Batch, hand: int) -> list[pb.LoggedEvent]:
        logged = []
        for place, entry in enumerate(batch.entries):
            event = public_event(entry, batch.at_ms)
            if event.hand != hand:
                continue
            sealed = {}
            for private in entry.private:
                # Opened and sealed again, since the log holds times relative to the commit.
                aad = event_aad(table, batch.epoch, batch.first + place, private.seat)
                own = event_pb2.TableEvent.FromString(self._sealer.open(private.sealed, aad))
                told = stamp(own, batch.at_ms).SerializeToString()
                sealed[private.seat] = self._sealer.seal(told, aad, pad_to=EVENT_PAD_BYTES)
            logged.append(pb.LoggedEvent(public_event=event.SerializeToString(), sealed=sealed))
        return logged


def _hand(hand: pb.UnwrittenHand) -> tuple[str, int, int]:
    if hand.epoch < 1 or hand.hand < 1:
        raise requests.invalid("hand", "must have an epoch and a number, both 1 or more")
    return requests.table_id(hand.table, "hand.table"), hand.epoch, hand.hand
