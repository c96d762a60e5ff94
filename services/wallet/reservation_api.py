"""Buy-ins in two steps over gRPC: `fivedraw.wallet.v1.ReservationService`."""

from __future__ import annotations

from typing import Final

from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc
from google.protobuf.duration_pb2 import Duration

from services.runtime.auth import current_identity
from services.wallet import commands as c
from services.wallet import wire
from services.wallet.checks import check_reservation, invalid
from services.wallet.ledger import Ledger
from services.wallet.wire import Context

_DURATION_SECONDS_MAX: Final = 315_576_000_000


class ReservationApi(pb_grpc.ReservationServiceServicer):
    """`fivedraw.wallet.v1.ReservationService`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def ReserveBuyIn(self, request: pb.ReserveBuyInRequest, context: Context) -> pb.ReserveBuyInResponse:
        """Holds cash for a buy-in."""
        command = c.ReserveBuyIn(
            batch_id=request.batch_id,
            table=wire.id_in("table", request.table, "tables"),
            epoch=request.epoch,
            reservation=request.reservation,
            sitting=request.sitting,
            player=wire.id_in("player", request.player, "players"),
            currency=request.currency,
            amount_minor=request.amount_minor,
            seat=request.seat,
            hold_ms=_span_ms("hold", request.hold),
        )
        reservation = await self._ledger.reserve_buy_in(command, caller=wire.namespace(current_identity()))
        return pb.ReserveBuyInResponse(reservation=_reservation(reservation))

    async def CommitReservation(
        self, request: pb.CommitReservationRequest, context: Context
    ) -> pb.CommitReservationResponse:
        """Opens the sitting with what was held."""
        table = wire.id_in("table", request.table, "tables")
        command = c.CommitReservation(request.batch_id, table, request.reservation)
        stack = await self._ledger.commit_reservation(command, caller=wire.namespace(current_identity()))
        return pb.CommitReservationResponse(stack_minor=stack.stack_minor)

    async def ReleaseReservation(
        self, request: pb.ReleaseReservationRequest, context: Context
    ) -> pb.ReleaseReservationResponse:
        """Gives what was held back."""
        table = wire.id_in("table", request.table, "tables")
        command = c.ReleaseReservation(request.batch_id, table, request.reservation)
        released = await self._ledger.release_reservation(command, caller=wire.namespace(current_identity()))
        return pb.ReleaseReservationResponse(amount_minor=released.amount_minor)

    async def GetReservation(self, request: pb.GetReservationRequest, context: Context) -> pb.GetReservationResponse:
        """One reservation."""
        table = wire.id_in("table", request.table, "tables")
        reservation = await self._ledger.get_reservation(table, request.reservation)
        return pb.GetReservationResponse(reservation=_reservation(reservation))

    async def ListReservations(
        self, request: pb.ListReservationsRequest, context: Context
    ) -> pb.ListReservationsResponse:
        """Those that are open."""
        size = wire.page_size(request.page_size)
        table = wire.id_in("table", request.table, "tables") if request.table else ""
        if request.page_token:
            check_reservation(request.page_token, "page_token")
        found = await self._ledger.list_reservations(table, request.page_token, size + 1)
        return pb.ListReservationsResponse(
            reservations=[_reservation(each) for each in found[:size]],
            next_page_token=found[size - 1].reservation if len(found) > size else "",
        )


def _span_ms(field: str, span: Duration) -> int:
    if not 0 <= span.seconds <= _DURATION_SECONDS_MAX or not 0 <= span.nanos < 1_000_000_000:
        raise invalid(field, "is not a length of time")
    return span.seconds * 1000 + span.nanos // 1_000_000


def _reservation(reservation: c.Reservation) -> pb.Reservation:
    return pb.Reservation(
        reservation=reservation.reservation,
        table=f"tables/{reservation.table}",
        epoch=reservation.epoch,
        sitting=reservation.sitting,
        player=f"players/{reservation.player}",
        seat=reservation.seat,
        currency=reservation.currency,
        amount_minor=reservation.amount_minor,
        state=wire.to_enum(pb.ReservationState, reservation.state),
        create_time=wire.to_time(reservation.opened_ms),
        expire_time=wire.to_time(reservation.expires_ms),
        close_time=wire.to_time(reservation.closed_ms) if reservation.closed_ms else None,
    )
