"""The ledger as the table service calls it: `fivedraw.wallet.v1.TableLedgerService`."""

from __future__ import annotations

from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc

from services.runtime.auth import current_identity
from services.wallet import commands as c
from services.wallet import wire
from services.wallet.chart import TransferCode
from services.wallet.ledger import Ledger
from services.wallet.wire import Context


class TableLedgerApi(pb_grpc.TableLedgerServiceServicer):
    """`fivedraw.wallet.v1.TableLedgerService`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def BuyIn(self, request: pb.BuyInRequest, context: Context) -> pb.BuyInResponse:
        """Opens a sitting."""
        command = c.BuyIn(
            batch_id=request.batch_id,
            table=wire.id_in("table", request.table, "tables"),
            epoch=request.epoch,
            sitting=request.sitting,
            player=wire.id_in("player", request.player, "players"),
            currency=request.currency,
            amount_minor=request.amount_minor,
            seat=request.seat,
        )
        stack = await self._ledger.buy_in(command, caller=wire.namespace(current_identity()))
        return pb.BuyInResponse(stack_minor=stack.stack_minor)

    async def TopUp(self, request: pb.TopUpRequest, context: Context) -> pb.TopUpResponse:
        """Adds to a stack."""
        table = wire.id_in("table", request.table, "tables")
        command = c.TopUp(request.batch_id, table, request.epoch, request.sitting, request.amount_minor)
        stack = await self._ledger.top_up(command, caller=wire.namespace(current_identity()))
        return pb.TopUpResponse(stack_minor=stack.stack_minor)

    async def CashOut(self, request: pb.CashOutRequest, context: Context) -> pb.CashOutResponse:
        """Closes a sitting."""
        table = wire.id_in("table", request.table, "tables")
        command = c.CashOut(request.batch_id, table, request.epoch, request.sitting)
        taken = await self._ledger.cash_out(command, caller=wire.namespace(current_identity()))
        return pb.CashOutResponse(amount_minor=taken.amount_minor)

    async def PostForced(self, request: pb.PostForcedRequest, context: Context) -> pb.PostForcedResponse:
        """Opens a hand."""
        command = c.PostForced(
            batch_id=request.batch_id,
            table=wire.id_in("table", request.table, "tables"),
            epoch=request.epoch,
            hand=request.hand,
            dealt_in=tuple(request.dealt_in),
            postings=wire.amounts_in("postings", request.postings, None),
            currency=request.currency,
            carry_in_minor=request.carry_in_minor,
        )
        pot = await self._ledger.post_forced(command, caller=wire.namespace(current_identity()))
        return pb.PostForcedResponse(pot_minor=pot.pot_minor)

    async def CollectBets(self, request: pb.CollectBetsRequest, context: Context) -> pb.CollectBetsResponse:
        """Collects a round."""
        command = c.CollectBets(
            batch_id=request.batch_id,
            table=wire.id_in("table", request.table, "tables"),
            epoch=request.epoch,
            hand=request.hand,
            round=request.round,
            bets=wire.amounts_in("bets", request.bets, TransferCode.BET),
            returned=wire.amounts_in("returned", request.returned, TransferCode.RETURN),
        )
        pot = await self._ledger.collect_bets(command, caller=wire.namespace(current_identity()))
        return pb.CollectBetsResponse(pot_minor=pot.pot_minor)

    async def AwardPot(self, request: pb.AwardPotRequest, context: Context) -> pb.AwardPotResponse:
        """Pays a hand out."""
        command = c.AwardPot(
            batch_id=request.batch_id,
            table=wire.id_in("table", request.table, "tables"),
            epoch=request.epoch,
            hand=request.hand,
            wins=wire.amounts_in("wins", request.wins, TransferCode.WIN),
            rake_minor=request.rake_minor,
            carry_out_minor=request.carry_out_minor,
        )
        awarded = await self._ledger.award_pot(command, caller=wire.namespace(current_identity()))
        return pb.AwardPotResponse(stacks=wire.to_stacks(awarded.stacks))

    async def VoidHand(self, request: pb.VoidHandRequest, context: Context) -> pb.VoidHandResponse:
        """Undoes a hand."""
        table = wire.id_in("table", request.table, "tables")
        command = c.VoidHand(request.batch_id, table, request.epoch, request.hand, request.reason)
        voided = await self._ledger.void_hand(command, caller=wire.namespace(current_identity()))
        return pb.VoidHandResponse(stacks=wire.to_stacks(voided.stacks), carry_minor=voided.carry_minor)

    async def RefundCarry(self, request: pb.RefundCarryRequest, context: Context) -> pb.RefundCarryResponse:
        """Gives a carry back."""
        command = c.RefundCarry(request.batch_id, wire.id_in("table", request.table, "tables"), request.epoch)
        refunded = await self._ledger.refund_carry(command, caller=wire.namespace(current_identity()))
        return pb.RefundCarryResponse(amount_minor=refunded.amount_minor)

    async def GetTableLedger(self, request: pb.GetTableLedgerRequest, context: Context) -> pb.GetTableLedgerResponse:
        """What the ledger knows of a table."""
        ledger = await self._ledger.get_table_ledger(wire.id_in("table", request.table, "tables"))
        return pb.GetTableLedgerResponse(ledger=wire.to_table_ledger(ledger))

    async def FenceTable(self, request: pb.FenceTableRequest, context: Context) -> pb.FenceTableResponse:
        """Shuts older epochs out."""
        command = c.FenceTable(wire.id_in("table", request.table, "tables"), request.epoch, request.reason)
        fenced = await self._ledger.fence_table(command, caller=wire.namespace(current_identity()))
        return pb.FenceTableResponse(ledger=wire.to_table_ledger(fenced.ledger), voided_hand=fenced.voided_hand)
