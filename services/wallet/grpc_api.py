"""The ledger over gRPC: `fivedraw.wallet.v1.WalletService`; `table_api` and `reservation_api` have the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import grpc
from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc

from services.runtime.auth import current_identity
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet import wire
from services.wallet.auditing import Auditor
from services.wallet.chart import PlayerState
from services.wallet.checks import check_table, invalid
from services.wallet.ledger import Ledger
from services.wallet.reads import EntryQuery
from services.wallet.reports import DAY_MS
from services.wallet.reservation_api import ReservationApi
from services.wallet.table_api import TableLedgerApi
from services.wallet.wire import Context

__all__ = ["TableLedgerApi", "WalletApi", "register"]

# These may act for any player.
_CASHIERS: Final = frozenset({"operator", "finance"})

REPORT_DAYS_MAX: Final = 366


def register(ledger: Ledger, auditor: Auditor, server: grpc.aio.Server) -> Sequence[str]:
    """Adds the wallet's services to the server; returns their full names."""
    pb_grpc.add_WalletServiceServicer_to_server(WalletApi(ledger, auditor), server)
    pb_grpc.add_TableLedgerServiceServicer_to_server(TableLedgerApi(ledger), server)
    pb_grpc.add_ReservationServiceServicer_to_server(ReservationApi(ledger), server)
    return [service.full_name for service in pb.DESCRIPTOR.services_by_name.values()]


class WalletApi(pb_grpc.WalletServiceServicer):
    """`fivedraw.wallet.v1.WalletService`."""

    def __init__(self, ledger: Ledger, auditor: Auditor) -> None:
        self._ledger = ledger
        self._auditor = auditor

    async def CreatePlayer(self, request: pb.CreatePlayerRequest, context: Context) -> pb.CreatePlayerResponse:
        """Makes a profile; a player may only make its own."""
        identity = current_identity()
        if request.player_id != identity.id and _CASHIERS.isdisjoint(identity.roles):
            raise Fault("PERMISSION_DENIED", "a player may only create itself")
        command = c.CreatePlayer(request.request_id, request.player_id, request.display_name)
        player = await self._ledger.create_player(command, caller=wire.namespace(identity))
        return pb.CreatePlayerResponse(player=wire.to_player(player))

    async def GetPlayer(self, request: pb.GetPlayerRequest, context: Context) -> pb.GetPlayerResponse:
        """Reads a profile."""
        name = wire.visible_player("name", request.name)
        return pb.GetPlayerResponse(player=wire.to_player(await self._ledger.get_player(name)))

    async def SetPlayerState(self, request: pb.SetPlayerStateRequest, context: Context) -> pb.SetPlayerStateResponse:
        """Freezes or unfreezes a player."""
        if request.state not in (pb.PLAYER_STATE_ACTIVE, pb.PLAYER_STATE_FROZEN):
            raise invalid("state", "active or frozen")
        command = c.SetPlayerState(
            wire.id_in("name", request.name, "players"), PlayerState(request.state), request.reason
        )
        player = await self._ledger.set_player_state(command, caller=wire.namespace(current_identity()))
        return pb.SetPlayerStateResponse(player=wire.to_player(player))

    async def SetPlayerLimits(self, request: pb.SetPlayerLimitsRequest, context: Context) -> pb.SetPlayerLimitsResponse:
        """Limits a player's day."""
        limits = request.limits
        command = c.SetPlayerLimits(
            player=wire.id_in("name", request.name, "players"),
            currency=limits.currency,
            deposit_day_max_minor=limits.deposit_day_max_minor,
            buy_in_day_max_minor=limits.buy_in_day_max_minor,
            reason=request.reason,
        )
        player = await self._ledger.set_player_limits(command, caller=wire.namespace(current_identity()))
        return pb.SetPlayerLimitsResponse(player=wire.to_player(player))

    async def Deposit(self, request: pb.DepositRequest, context: Context) -> pb.DepositResponse:
        """Cashier to player."""
        player = wire.id_in("player", request.player, "players")
        command = c.Deposit(request.request_id, player, request.currency, request.amount_minor, request.note)
        balance = await self._ledger.deposit(command, caller=wire.namespace(current_identity()))
        return pb.DepositResponse(balance=wire.to_balance(balance))

    async def Withdraw(self, request: pb.WithdrawRequest, context: Context) -> pb.WithdrawResponse:
        """Player to cashier."""
        player = wire.id_in("player", request.player, "players")
        command = c.Withdraw(request.request_id, player, request.currency, request.amount_minor, request.note)
        balance = await self._ledger.withdraw(command, caller=wire.namespace(current_identity()))
        return pb.WithdrawResponse(balance=wire.to_balance(balance))

    async def AdjustBalance(self, request: pb.AdjustBalanceRequest, context: Context) -> pb.AdjustBalanceResponse:
        """Corrects a player's cash; the gate has seen to the second person."""
        player, identity = wire.id_in("player", request.player, "players"), current_identity()
        command = c.AdjustBalance(
            request.request_id,
            player,
            request.currency,
            request.amount_minor,
            request.reason,
            approved_by=f"person/{identity.approved_by}" if identity.approved_by else "",
        )
        balance = await self._ledger.adjust_balance(command, caller=wire.namespace(identity))
        return pb.AdjustBalanceResponse(balance=wire.to_balance(balance))

    async def GetBalances(self, request: pb.GetBalancesRequest, context: Context) -> pb.GetBalancesResponse:
        """A player's chips."""
        at_ms = wire.millis("at", request.at) if request.HasField("at") else None
        balances = await self._ledger.get_balances(wire.visible_player("player", request.player), at_ms)
        return pb.GetBalancesResponse(
            cash=[wire.to_balance(each) for each in balances.cash],
            on_tables=[wire.to_balance(each) for each in balances.on_tables],
            reserved=[wire.to_balance(each) for each in balances.reserved],
        )

    async def ListEntries(self, request: pb.ListEntriesRequest, context: Context) -> pb.ListEntriesResponse:
        """A page of a player's statement."""
        if request.page_token and not (request.page_token.isascii() and request.page_token.isdecimal()):
            raise invalid("page_token", "not a token of this list")
        if len(request.page_token) > 18:
            raise invalid("page_token", "not a token of this list")
        if request.hand < 0 or (request.hand and not request.table):
            raise invalid("hand", "above 0, and with its table")
        query = EntryQuery(
            player=wire.visible_player("player", request.player),
            page_size=wire.page_size(request.page_size),
            before_entry=int(request.page_token or 0),
            table=wire.id_in("table", request.table, "tables") if request.table else "",
            hand=request.hand,
            before_ms=wire.millis("before", request.before) if request.HasField("before") else 0,
            from_ms=wire.millis("since", request.since) if request.HasField("since") else 0,
        )
        page = await self._ledger.list_entries(query)
        token = str(page.next_before) if page.next_before else ""
        return pb.ListEntriesResponse(entries=[wire.to_entry(each) for each in page.entries], next_page_token=token)

    async def GetLedgerSummary(
        self, request: pb.GetLedgerSummaryRequest, context: Context
    ) -> pb.GetLedgerSummaryResponse:
        """Totals of the whole ledger."""
        summary = await self._ledger.get_ledger_summary()
        return pb.GetLedgerSummaryResponse(
            totals=[
                pb.KindTotal(
                    kind=wire.to_enum(pb.AccountKind, total.kind),
                    currency=total.currency,
                    amount_minor=total.amount_minor,
                    accounts=total.accounts,
                )
                for total in summary.totals
            ],
            imbalance=[wire.to_balance(each) for each in summary.imbalance],
            batches=summary.batches,
            open_hands=summary.open_hands,
        )

    async def GetRakeReport(self, request: pb.GetRakeReportRequest, context: Context) -> pb.GetRakeReportResponse:
        """The rake by table and day."""
        since_ms, before_ms = wire.millis("since", request.since), wire.millis("before", request.before)
        if not request.HasField("since") or not 0 < before_ms - since_ms <= REPORT_DAYS_MAX * DAY_MS:
            raise invalid("before", f"after since, and by at most {REPORT_DAYS_MAX} days")
        table = wire.id_in("table", request.table, "tables") if request.table else ""
        report = await self._ledger.get_rake_report(since_ms, before_ms, table)
        rows = [
            pb.RakeRow(
                table=f"tables/{row.table}",
                day=row.day,
                currency=row.currency,
                rake_minor=row.rake_minor,
                hands=row.hands,
            )
            for row in report.rows
        ]
        return pb.GetRakeReportResponse(rows=rows, truncated=report.truncated)

    async def ListChipsInPlay(self, request: pb.ListChipsInPlayRequest, context: Context) -> pb.ListChipsInPlayResponse:
        """The chips on tables."""
        size = wire.page_size(request.page_size)
        if request.page_token:
            check_table(request.page_token)
        found = await self._ledger.list_chips_in_play(request.page_token, size + 1)
        tables = [
            pb.ChipsInPlay(
                table=f"tables/{row.table}",
                currency=row.currency,
                sittings=row.sittings,
                stacks_minor=row.stacks_minor,
                pot_minor=row.pot_minor,
                carry_minor=row.carry_minor,
            )
            for row in found[:size]
        ]
        return pb.ListChipsInPlayResponse(
            tables=tables, next_page_token=found[size - 1].table if len(found) > size else ""
        )

    async def ListDormantBalances(
        self, request: pb.ListDormantBalancesRequest, context: Context
    ) -> pb.ListDormantBalancesResponse:
        """Cash that lies idle."""
        if not request.HasField("idle_since"):
            raise invalid("idle_since", "is needed")
        idle_since_ms = wire.millis("idle_since", request.idle_since)
        found = await self._ledger.list_dormant_balances(idle_since_ms, wire.page_size(request.page_size))
        return pb.ListDormantBalancesResponse(
            balances=[
                pb.DormantBalance(
                    player=f"players/{each.player}",
                    balance=pb.Balance(currency=each.currency, amount_minor=each.amount_minor),
                    last_entry_time=wire.to_time(each.last_entry_ms),
                )
                for each in found.balances
            ],
            totals=[wire.to_balance(each) for each in found.totals],
        )

    async def GetHand(self, request: pb.GetHandRequest, context: Context) -> pb.GetHandResponse:
        """One hand's money."""
        hand = await self._ledger.get_hand(wire.id_in("table", request.table, "tables"), request.hand)
        return pb.GetHandResponse(hand=wire.to_hand(hand))

    async def AuditLedger(self, request: pb.AuditLedgerRequest, context: Context) -> pb.AuditLedgerResponse:
        """Checks everything."""
        report = await self._auditor.audit()
        return pb.AuditLedgerResponse(
            clean=report.clean, faults=report.faults, entries_checked=report.entries_checked, head=report.head
        )
