"""The ledger over gRPC: names and enums of the contract in, values of the ledger out, and who may see whose money."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import grpc
from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc
from google.protobuf.timestamp_pb2 import Timestamp
from grpc.aio import ServicerContext

from services.runtime.auth import Identity, current_identity
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.auditing import Auditor
from services.wallet.chart import PlayerState, TransferCode
from services.wallet.checks import check_table, invalid
from services.wallet.ledger import Ledger
from services.wallet.reads import PAGE_DEFAULT, PAGE_MAX, EntryQuery
from services.wallet.reports import DAY_MS

# These may see and act for any player.
_STAFF: Final = frozenset({"operator", "finance", "auditor"})
_CASHIERS: Final = frozenset({"operator", "finance"})

REPORT_DAYS_MAX: Final = 366
_TIMESTAMP_SECONDS_MAX: Final = 253_402_300_799

Context = ServicerContext[Any, Any]


def register(ledger: Ledger, auditor: Auditor, server: grpc.aio.Server) -> Sequence[str]:
    """Adds both services to the server; returns their full names."""
    pb_grpc.add_WalletServiceServicer_to_server(WalletApi(ledger, auditor), server)
    pb_grpc.add_TableLedgerServiceServicer_to_server(TableLedgerApi(ledger), server)
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
        player = await self._ledger.create_player(command, caller=_namespace(identity))
        return pb.CreatePlayerResponse(player=_player(player))

    async def GetPlayer(self, request: pb.GetPlayerRequest, context: Context) -> pb.GetPlayerResponse:
        """Reads a profile."""
        name = _visible_player("name", request.name)
        return pb.GetPlayerResponse(player=_player(await self._ledger.get_player(name)))

    async def SetPlayerState(self, request: pb.SetPlayerStateRequest, context: Context) -> pb.SetPlayerStateResponse:
        """Freezes or unfreezes a player."""
        if request.state not in (pb.PLAYER_STATE_ACTIVE, pb.PLAYER_STATE_FROZEN):
            raise invalid("state", "active or frozen")
        command = c.SetPlayerState(_id("name", request.name, "players"), PlayerState(request.state), request.reason)
        player = await self._ledger.set_player_state(command, caller=_namespace(current_identity()))
        return pb.SetPlayerStateResponse(player=_player(player))

    async def Deposit(self, request: pb.DepositRequest, context: Context) -> pb.DepositResponse:
        """Cashier to player."""
        player = _id("player", request.player, "players")
        command = c.Deposit(request.request_id, player, request.currency, request.amount_minor, request.note)
        balance = await self._ledger.deposit(command, caller=_namespace(current_identity()))
        return pb.DepositResponse(balance=_balance(balance))

    async def Withdraw(self, request: pb.WithdrawRequest, context: Context) -> pb.WithdrawResponse:
        """Player to cashier."""
        player = _id("player", request.player, "players")
        command = c.Withdraw(request.request_id, player, request.currency, request.amount_minor, request.note)
        balance = await self._ledger.withdraw(command, caller=_namespace(current_identity()))
        return pb.WithdrawResponse(balance=_balance(balance))

    async def GetBalances(self, request: pb.GetBalancesRequest, context: Context) -> pb.GetBalancesResponse:
        """A player's chips."""
        at_ms = _millis("at", request.at) if request.HasField("at") else None
        balances = await self._ledger.get_balances(_visible_player("player", request.player), at_ms)
        return pb.GetBalancesResponse(
            cash=[_balance(each) for each in balances.cash], on_tables=[_balance(each) for each in balances.on_tables]
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
            player=_visible_player("player", request.player),
            page_size=_page_size(request.page_size),
            before_entry=int(request.page_token or 0),
            table=_id("table", request.table, "tables") if request.table else "",
            hand=request.hand,
            before_ms=_millis("before", request.before) if request.HasField("before") else 0,
            from_ms=_millis("since", request.since) if request.HasField("since") else 0,
        )
        page = await self._ledger.list_entries(query)
        token = str(page.next_before) if page.next_before else ""
        return pb.ListEntriesResponse(entries=[_entry(each) for each in page.entries], next_page_token=token)

    async def GetLedgerSummary(
        self, request: pb.GetLedgerSummaryRequest, context: Context
    ) -> pb.GetLedgerSummaryResponse:
        """Totals of the whole ledger."""
        summary = await self._ledger.get_ledger_summary()
        return pb.GetLedgerSummaryResponse(
            totals=[
                pb.KindTotal(
                    kind=_wire_enum(pb.AccountKind, total.kind),
                    currency=total.currency,
                    amount_minor=total.amount_minor,
                    accounts=total.accounts,
                )
                for total in summary.totals
            ],
            imbalance=[_balance(each) for each in summary.imbalance],
            batches=summary.batches,
            open_hands=summary.open_hands,
        )

    async def GetRakeReport(self, request: pb.GetRakeReportRequest, context: Context) -> pb.GetRakeReportResponse:
        """The rake by table and day."""
        since_ms, before_ms = _millis("since", request.since), _millis("before", request.before)
        if not request.HasField("since") or not 0 < before_ms - since_ms <= REPORT_DAYS_MAX * DAY_MS:
            raise invalid("before", f"after since, and by at most {REPORT_DAYS_MAX} days")
        table = _id("table", request.table, "tables") if request.table else ""
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
        size = _page_size(request.page_size)
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
        idle_since_ms = _millis("idle_since", request.idle_since)
        found = await self._ledger.list_dormant_balances(idle_since_ms, _page_size(request.page_size))
        return pb.ListDormantBalancesResponse(
            balances=[
                pb.DormantBalance(
                    player=f"players/{each.player}",
                    balance=pb.Balance(currency=each.currency, amount_minor=each.amount_minor),
                    last_entry_time=_time(each.last_entry_ms),
                )
                for each in found.balances
            ],
            totals=[_balance(each) for each in found.totals],
        )

    async def AuditLedger(self, request: pb.AuditLedgerRequest, context: Context) -> pb.AuditLedgerResponse:
        """Checks everything."""
        report = await self._auditor.audit()
        return pb.AuditLedgerResponse(
            clean=report.clean, faults=report.faults, entries_checked=report.entries_checked, head=report.head
        )


class TableLedgerApi(pb_grpc.TableLedgerServiceServicer):
    """`fivedraw.wallet.v1.TableLedgerService`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def BuyIn(self, request: pb.BuyInRequest, context: Context) -> pb.BuyInResponse:
        """Opens a sitting."""
        command = c.BuyIn(
            batch_id=request.batch_id,
            table=_id("table", request.table, "tables"),
            epoch=request.epoch,
            sitting=request.sitting,
            player=_id("player", request.player, "players"),
            currency=request.currency,
            amount_minor=request.amount_minor,
            seat=request.seat,
        )
        stack = await self._ledger.buy_in(command, caller=_namespace(current_identity()))
        return pb.BuyInResponse(stack_minor=stack.stack_minor)

    async def TopUp(self, request: pb.TopUpRequest, context: Context) -> pb.TopUpResponse:
        """Adds to a stack."""
        table = _id("table", request.table, "tables")
        command = c.TopUp(request.batch_id, table, request.epoch, request.sitting, request.amount_minor)
        stack = await self._ledger.top_up(command, caller=_namespace(current_identity()))
        return pb.TopUpResponse(stack_minor=stack.stack_minor)

    async def CashOut(self, request: pb.CashOutRequest, context: Context) -> pb.CashOutResponse:
        """Closes a sitting."""
        table = _id("table", request.table, "tables")
        command = c.CashOut(request.batch_id, table, request.epoch, request.sitting)
        taken = await self._ledger.cash_out(command, caller=_namespace(current_identity()))
        return pb.CashOutResponse(amount_minor=taken.amount_minor)

    async def PostForced(self, request: pb.PostForcedRequest, context: Context) -> pb.PostForcedResponse:
        """Opens a hand."""
        command = c.PostForced(
            batch_id=request.batch_id,
            table=_id("table", request.table, "tables"),
            epoch=request.epoch,
            hand=request.hand,
            dealt_in=tuple(request.dealt_in),
            postings=_amounts("postings", request.postings, None),
            currency=request.currency,
            carry_in_minor=request.carry_in_minor,
        )
        pot = await self._ledger.post_forced(command, caller=_namespace(current_identity()))
        return pb.PostForcedResponse(pot_minor=pot.pot_minor)

    async def CollectBets(self, request: pb.CollectBetsRequest, context: Context) -> pb.CollectBetsResponse:
        """Collects a round."""
        command = c.CollectBets(
            batch_id=request.batch_id,
            table=_id("table", request.table, "tables"),
            epoch=request.epoch,
            hand=request.hand,
            round=request.round,
            bets=_amounts("bets", request.bets, TransferCode.BET),
            returned=_amounts("returned", request.returned, TransferCode.RETURN),
        )
        pot = await self._ledger.collect_bets(command, caller=_namespace(current_identity()))
        return pb.CollectBetsResponse(pot_minor=pot.pot_minor)

    async def AwardPot(self, request: pb.AwardPotRequest, context: Context) -> pb.AwardPotResponse:
        """Pays a hand out."""
        command = c.AwardPot(
            batch_id=request.batch_id,
            table=_id("table", request.table, "tables"),
            epoch=request.epoch,
            hand=request.hand,
            wins=_amounts("wins", request.wins, TransferCode.WIN),
            rake_minor=request.rake_minor,
            carry_out_minor=request.carry_out_minor,
        )
        awarded = await self._ledger.award_pot(command, caller=_namespace(current_identity()))
        return pb.AwardPotResponse(stacks=_stacks(awarded.stacks))

    async def VoidHand(self, request: pb.VoidHandRequest, context: Context) -> pb.VoidHandResponse:
        """Undoes a hand."""
        table = _id("table", request.table, "tables")
        command = c.VoidHand(request.batch_id, table, request.epoch, request.hand, request.reason)
        voided = await self._ledger.void_hand(command, caller=_namespace(current_identity()))
        return pb.VoidHandResponse(stacks=_stacks(voided.stacks), carry_minor=voided.carry_minor)

    async def RefundCarry(self, request: pb.RefundCarryRequest, context: Context) -> pb.RefundCarryResponse:
        """Gives a carry back."""
        command = c.RefundCarry(request.batch_id, _id("table", request.table, "tables"), request.epoch)
        refunded = await self._ledger.refund_carry(command, caller=_namespace(current_identity()))
        return pb.RefundCarryResponse(amount_minor=refunded.amount_minor)

    async def GetTableLedger(self, request: pb.GetTableLedgerRequest, context: Context) -> pb.GetTableLedgerResponse:
        """What the ledger knows of a table."""
        ledger = await self._ledger.get_table_ledger(_id("table", request.table, "tables"))
        return pb.GetTableLedgerResponse(ledger=_table_ledger(ledger))

    async def FenceTable(self, request: pb.FenceTableRequest, context: Context) -> pb.FenceTableResponse:
        """Shuts older epochs out."""
        command = c.FenceTable(_id("table", request.table, "tables"), request.epoch, request.reason)
        fenced = await self._ledger.fence_table(command, caller=_namespace(current_identity()))
        return pb.FenceTableResponse(ledger=_table_ledger(fenced.ledger), voided_hand=fenced.voided_hand)


def _namespace(identity: Identity) -> str:
    return f"{identity.kind}/{identity.id}"


def _id(field: str, name: str, collection: str) -> str:
    found, _, rest = name.partition("/")
    # What is not printable (a NUL above all) is nothing that a database should be asked for.
    if found != collection or not rest.isprintable() or not rest:
        raise invalid(field, f"of the form {collection}/…")
    return rest


def _page_size(asked: int) -> int:
    if not 0 <= asked <= PAGE_MAX:
        raise invalid("page_size", f"0 to {PAGE_MAX}")
    return asked or PAGE_DEFAULT


def _visible_player(field: str, name: str) -> str:
    identity = current_identity()
    player = _id(field, name, "players")
    if not identity.is_service and player != identity.id and _STAFF.isdisjoint(identity.roles):
        raise Fault("PERMISSION_DENIED", "a player may only see itself")
    return player


def _amounts(
    field: str, lines: Iterable[pb.SittingAmount], default: TransferCode | None
) -> tuple[c.SittingAmount, ...]:
    return tuple(
        c.SittingAmount(line.sitting, line.amount_minor, _code(f"{field}.code", line.code, default)) for line in lines
    )


def _code(field: str, number: int, default: TransferCode | None) -> TransferCode:
    if number == pb.TRANSFER_CODE_UNSPECIFIED and default is not None:
        return default
    try:
        return TransferCode(number)
    except ValueError:
        raise invalid(field, "is not a code") from None


def _millis(field: str, stamp: Timestamp) -> int:
    if not 0 <= stamp.seconds <= _TIMESTAMP_SECONDS_MAX or not 0 <= stamp.nanos < 1_000_000_000:
        raise invalid(field, "is not a time")
    return stamp.seconds * 1000 + stamp.nanos // 1_000_000


def _time(millis: int) -> Timestamp:
    return Timestamp(seconds=millis // 1000, nanos=millis % 1000 * 1_000_000)


def _wire_enum(enum: Any, value: int) -> Any:
    """The generated stubs type enums more narrowly than the plain number that protobuf takes."""
    return enum.Name(value)


def _player(player: c.Player) -> pb.Player:
    return pb.Player(
        name=f"players/{player.player}",
        display_name=player.display_name,
        state=_wire_enum(pb.PlayerState, player.state),
        create_time=_time(player.created_ms),
    )


def _balance(balance: c.Balance) -> pb.Balance:
    return pb.Balance(currency=balance.currency, amount_minor=balance.amount_minor)


def _stacks(stacks: Iterable[c.SittingStack]) -> list[pb.SittingStack]:
    return [
        pb.SittingStack(
            sitting=stack.sitting, player=f"players/{stack.player}", stack_minor=stack.stack_minor, open=stack.open
        )
        for stack in stacks
    ]


def _table_ledger(ledger: c.TableLedger) -> pb.TableLedger:
    outcome = ledger.last_hand_outcome or 0
    return pb.TableLedger(
        epoch=ledger.epoch,
        last_hand=ledger.last_hand,
        last_hand_outcome=_wire_enum(pb.HandOutcome, outcome),
        last_hand_steps=ledger.last_hand_steps,
        stacks=_stacks(ledger.stacks),
        carry_minor=ledger.carry_minor,
    )


def _entry(entry: c.Entry) -> pb.Entry:
    return pb.Entry(
        entry_id=entry.entry_id,
        batch_id=entry.batch_id,
        code=_wire_enum(pb.TransferCode, entry.code),
        currency=entry.currency,
        amount_minor=entry.amount_minor,
        balance_minor=entry.balance_minor,
        table=f"tables/{entry.table}" if entry.table else "",
        hand=entry.hand,
        commit_time=_time(entry.committed_ms),
        account=entry.account,
    )
