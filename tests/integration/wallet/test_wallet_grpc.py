"""The ledger over gRPC: who may call and see what, a hand on the wire, garbage answered with reasons."""

from __future__ import annotations

import time
from functools import partial

import grpc
import pytest
from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.runtime.auth import SECOND_TOKEN_HEADER
from services.runtime.errors import Fault
from services.wallet import grpc_api

LONG = "x" * 30_000
DEADLINE = 10

TABLE_CALLS = (
    ("BuyIn", pb.BuyInRequest),
    ("TopUp", pb.TopUpRequest),
    ("CashOut", pb.CashOutRequest),
    ("PostForced", pb.PostForcedRequest),
    ("CollectBets", pb.CollectBetsRequest),
    ("AwardPot", pb.AwardPotRequest),
    ("VoidHand", pb.VoidHandRequest),
    ("RefundCarry", pb.RefundCarryRequest),
    ("GetTableLedger", pb.GetTableLedgerRequest),
    ("FenceTable", pb.FenceTableRequest),
)

RESERVATION_CALLS = (
    ("ReserveBuyIn", pb.ReserveBuyInRequest),
    ("CommitReservation", pb.CommitReservationRequest),
    ("ReleaseReservation", pb.ReleaseReservationRequest),
    ("GetReservation", pb.GetReservationRequest),
    ("ListReservations", pb.ListReservationsRequest),
)

STEP = {"batch_id": "b", "table": "tables/t1", "epoch": 1}
BUY_IN = STEP | {"sitting": "s", "player": "players/ann", "currency": "EUR", "amount_minor": 1, "seat": 1}
FORCED = STEP | {"hand": 1, "dealt_in": ["s"], "currency": "EUR"}
HOLD = Duration(seconds=60)
RESERVE = BUY_IN | {"reservation": "r", "hold": HOLD}
END = {"batch_id": "e", "table": "tables/t1", "reservation": "r"}
ADJUST = {"request_id": "j", "player": "players/ann", "currency": "EUR", "amount_minor": 5, "reason": "a test"}
ANTE = pb.SittingAmount(sitting="s", amount_minor=1, code=pb.TRANSFER_CODE_ANTE)

TABLE_GARBAGE = (
    ("BuyIn", pb.BuyInRequest(), "table"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"table": "t1"}), "table"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"table": "tables/../../etc"}), "table"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"player": "players/x'; DROP TABLE players; --"}), "player"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"batch_id": ""}), "batch_id"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"batch_id": LONG}), "batch_id"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"batch_id": "a\0b"}), "batch_id"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"epoch": 0}), "epoch"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"epoch": 2**63 - 1}), "epoch"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"sitting": "s s"}), "sitting"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"currency": "eur"}), "currency"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"currency": LONG}), "currency"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"amount_minor": 0}), "amount_minor"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"amount_minor": -(2**63)}), "amount_minor"),
    ("BuyIn", pb.BuyInRequest(**BUY_IN | {"seat": 0}), "seat"),
    ("TopUp", pb.TopUpRequest(**STEP, sitting="s", amount_minor=-1), "amount_minor"),
    ("CashOut", pb.CashOutRequest(**STEP), "sitting"),
    ("PostForced", pb.PostForcedRequest(**FORCED | {"hand": -1}), "hand"),
    ("PostForced", pb.PostForcedRequest(**FORCED | {"dealt_in": []}), "dealt_in"),
    ("PostForced", pb.PostForcedRequest(**FORCED | {"dealt_in": ["s", "s"]}), "dealt_in"),
    ("PostForced", pb.PostForcedRequest(**FORCED | {"dealt_in": [str(n) for n in range(10)]}), "dealt_in"),
    ("PostForced", pb.PostForcedRequest(**FORCED, postings=[pb.SittingAmount(sitting="s")]), "postings.code"),
    ("PostForced", pb.PostForcedRequest(**FORCED, postings=[ANTE] * 500), "postings"),
    ("PostForced", pb.PostForcedRequest(**FORCED, carry_in_minor=-1), "carry_in_minor"),
    (
        "PostForced",
        pb.PostForcedRequest(**FORCED, postings=[pb.SittingAmount(sitting="s", amount_minor=1, code=9)]),
        "postings.code",
    ),
    (
        "PostForced",
        pb.PostForcedRequest(**FORCED, postings=[pb.SittingAmount(sitting="s", amount_minor=1, code=99)]),
        "postings.code",
    ),
    ("CollectBets", pb.CollectBetsRequest(**STEP, hand=1, round=3), "round"),
    ("AwardPot", pb.AwardPotRequest(**STEP, hand=1, rake_minor=-5), "rake_minor"),
    ("AwardPot", pb.AwardPotRequest(**STEP, hand=1, wins=[pb.SittingAmount(sitting="s")]), "wins.amount_minor"),
    ("VoidHand", pb.VoidHandRequest(**STEP, hand=1), "reason"),
    ("VoidHand", pb.VoidHandRequest(**STEP, hand=1, reason=LONG), "reason"),
    ("RefundCarry", pb.RefundCarryRequest(table="tables/t1", epoch=1), "batch_id"),
    ("GetTableLedger", pb.GetTableLedgerRequest(table="tables/"), "table"),
    ("FenceTable", pb.FenceTableRequest(table="tables/t1"), "epoch"),
)

RESERVATION_GARBAGE = (
    ("ReserveBuyIn", pb.ReserveBuyInRequest(), "table"),
    ("ReserveBuyIn", pb.ReserveBuyInRequest(**RESERVE | {"reservation": "r r"}), "reservation"),
    ("ReserveBuyIn", pb.ReserveBuyInRequest(**RESERVE | {"reservation": "r" * 121}), "reservation"),
    ("ReserveBuyIn", pb.ReserveBuyInRequest(**RESERVE | {"amount_minor": -1}), "amount_minor"),
    ("ReserveBuyIn", pb.ReserveBuyInRequest(**RESERVE | {"hold": Duration(nanos=999_999_999)}), "hold"),
    ("ReserveBuyIn", pb.ReserveBuyInRequest(**RESERVE | {"hold": Duration(seconds=7 * 86_400 + 1)}), "hold"),
    ("ReserveBuyIn", pb.ReserveBuyInRequest(**RESERVE | {"hold": Duration(seconds=2**62)}), "hold"),
    ("CommitReservation", pb.CommitReservationRequest(**END | {"batch_id": ""}), "batch_id"),
    ("CommitReservation", pb.CommitReservationRequest(**END | {"table": "t1"}), "table"),
    ("ReleaseReservation", pb.ReleaseReservationRequest(**END | {"reservation": LONG}), "reservation"),
    ("GetReservation", pb.GetReservationRequest(table="tables/t1"), "reservation"),
    ("ListReservations", pb.ListReservationsRequest(page_size=501), "page_size"),
    ("ListReservations", pb.ListReservationsRequest(page_token="'; --"), "page_token"),
)

WALLET_GARBAGE = (
    ("CreatePlayer", pb.CreatePlayerRequest(request_id="r", player_id="a b", display_name="Abc"), "player"),
    ("CreatePlayer", pb.CreatePlayerRequest(request_id="r", player_id="a", display_name="A"), "display_name"),
    ("CreatePlayer", pb.CreatePlayerRequest(request_id="r", player_id="a", display_name="<b>x</b>"), "display_name"),
    ("GetPlayer", pb.GetPlayerRequest(name="ann"), "name"),
    ("SetPlayerState", pb.SetPlayerStateRequest(name="players/ann", reason="x"), "state"),
    ("SetPlayerState", pb.SetPlayerStateRequest(name="players/ann", state=pb.PLAYER_STATE_FROZEN), "reason"),
    ("SetPlayerLimits", pb.SetPlayerLimitsRequest(name="players/ann", reason="x"), "currency"),
    (
        "SetPlayerLimits",
        pb.SetPlayerLimitsRequest(
            name="players/ann", reason="x", limits=pb.PlayerLimits(currency="EUR", buy_in_day_max_minor=-1)
        ),
        "buy_in_day_max_minor",
    ),
    ("Deposit", pb.DepositRequest(request_id="r", player="players/ann", currency="EUR"), "amount_minor"),
    ("Withdraw", pb.WithdrawRequest(player="players/ann", currency="EUR", amount_minor=1), "batch_id"),
    ("AdjustBalance", pb.AdjustBalanceRequest(**ADJUST | {"amount_minor": 0}), "amount_minor"),
    ("AdjustBalance", pb.AdjustBalanceRequest(**ADJUST | {"amount_minor": -(2**63)}), "amount_minor"),
    ("AdjustBalance", pb.AdjustBalanceRequest(**ADJUST | {"reason": ""}), "reason"),
    ("AdjustBalance", pb.AdjustBalanceRequest(**ADJUST | {"request_id": ""}), "batch_id"),
    ("GetBalances", pb.GetBalancesRequest(player="players/" + LONG), "player"),
    ("ListEntries", pb.ListEntriesRequest(player="players/ann", page_size=-1), "page_size"),
    ("ListEntries", pb.ListEntriesRequest(player="players/ann", page_size=501), "page_size"),
    ("ListEntries", pb.ListEntriesRequest(player="players/ann", page_token="1 OR 1=1"), "page_token"),
    ("ListEntries", pb.ListEntriesRequest(player="players/ann", page_token="9" * 19), "page_token"),
    ("ListEntries", pb.ListEntriesRequest(player="players/ann", hand=3), "hand"),
    ("GetHand", pb.GetHandRequest(table="t1", hand=1), "table"),
    ("GetHand", pb.GetHandRequest(table="tables/t1"), "hand"),
    ("GetHand", pb.GetHandRequest(table="tables/t1", hand=-(2**63)), "hand"),
)


@pytest.fixture
async def wire(ledger, auditor, serve, make_settings, channel, token):  # noqa: PLR0917 - fixtures go by name
    """`wire(pb_grpc.WalletServiceStub, "alice", "player")` or `wire(stub, as_service="table")`."""
    server = await serve(make_settings(), partial(grpc_api.register, ledger, auditor))

    def open_as(stub, subject="", *roles, as_service=None):
        if as_service:
            return stub(channel(server, as_service=as_service))
        # Everybody here has a second person behind them, for the calls that take two.
        second = ((SECOND_TOKEN_HEADER, token("second", "finance")),)
        return stub(channel(server, token=token(subject, *roles), metadata=second))

    return open_as


async def reason_of(call) -> Fault:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    fault = Fault.from_rpc(caught.value)
    assert fault is not None, caught.value
    return fault


async def test_a_hand_on_the_wire(wire):
    desk = wire(pb_grpc.WalletServiceStub, "op", "operator")
    table = wire(pb_grpc.TableLedgerServiceStub, as_service="table")
    for seat, player in enumerate(("ann", "bob"), start=1):
        made = await desk.CreatePlayer(
            pb.CreatePlayerRequest(request_id=player, player_id=player, display_name=player.title()), timeout=DEADLINE
        )
        assert made.player.name == f"players/{player}"
        await desk.Deposit(
            pb.DepositRequest(request_id="d" + player, player=made.player.name, currency="EUR", amount_minor=100),
            timeout=DEADLINE,
        )
        buy_in = BUY_IN | {"batch_id": player, "sitting": player, "player": made.player.name, "seat": seat}
        stack = await table.BuyIn(pb.BuyInRequest(**buy_in | {"amount_minor": 100}), timeout=DEADLINE)
        assert stack.stack_minor == 100
    both = [pb.SittingAmount(sitting=name, amount_minor=5, code=pb.TRANSFER_CODE_ANTE) for name in ("ann", "bob")]
    forced = FORCED | {"batch_id": "f", "dealt_in": ["ann", "bob"], "postings": both}
    assert (await table.PostForced(pb.PostForcedRequest(**forced), timeout=DEADLINE)).pot_minor == 10
    bets = [pb.SittingAmount(sitting=name, amount_minor=10) for name in ("ann", "bob")]
    collect = pb.CollectBetsRequest(**STEP | {"batch_id": "c"}, hand=1, round=1, bets=bets)
    assert (await table.CollectBets(collect, timeout=DEADLINE)).pot_minor == 30
    wins = [pb.SittingAmount(sitting="bob", amount_minor=28)]
    award = pb.AwardPotRequest(**STEP | {"batch_id": "a"}, hand=1, wins=wins, rake_minor=2)
    first = await table.AwardPot(award, timeout=DEADLINE)
    assert (await table.AwardPot(award, timeout=DEADLINE)).SerializeToString() == first.SerializeToString()
    known = (await table.GetTableLedger(pb.GetTableLedgerRequest(table="tables/t1"), timeout=DEADLINE)).ledger
    assert [(stack.player, stack.stack_minor) for stack in known.stacks] == [("players/ann", 85), ("players/bob", 113)]
    assert known.last_hand_outcome == pb.HAND_OUTCOME_AWARDED

    history = wire(pb_grpc.WalletServiceStub, as_service="history")
    hand = (await history.GetHand(pb.GetHandRequest(table="tables/t1", hand=1), timeout=DEADLINE)).hand
    assert (hand.table, hand.hand, hand.epoch, hand.outcome) == ("tables/t1", 1, 1, pb.HAND_OUTCOME_AWARDED)
    assert (hand.currency, hand.pot_minor, hand.rake_minor) == ("EUR", 30, 2)
    assert [(each.player, each.seat, each.ante_minor, each.bet_minor, each.won_minor) for each in hand.sittings] == [
        ("players/ann", 1, 5, 10, 0),
        ("players/bob", 2, 5, 10, 28),
    ]
    assert hand.open_time.ToMilliseconds() <= hand.close_time.ToMilliseconds()

    bob = wire(pb_grpc.WalletServiceStub, "bob", "player")
    lines, page = [], pb.ListEntriesResponse(next_page_token="")
    while not lines or page.next_page_token:
        asked = pb.ListEntriesRequest(player="players/bob", page_size=2, page_token=page.next_page_token)
        page = await bob.ListEntries(asked, timeout=DEADLINE)
        lines += [(line.code, line.amount_minor, line.balance_minor) for line in page.entries]
    assert lines == [
        (pb.TRANSFER_CODE_WIN, 28, 113),
        (pb.TRANSFER_CODE_BET, -10, 85),
        (pb.TRANSFER_CODE_ANTE, -5, 95),
        (pb.TRANSFER_CODE_BUY_IN, 100, 100),
        (pb.TRANSFER_CODE_BUY_IN, -100, 0),
        (pb.TRANSFER_CODE_DEPOSIT, 100, 100),
    ]
    of_hand = pb.ListEntriesRequest(player="players/bob", table="tables/t1", hand=1)
    assert len((await bob.ListEntries(of_hand, timeout=DEADLINE)).entries) == 3
    assert [b.amount_minor for b in (await bob.GetBalances(pb.GetBalancesRequest(player="players/bob"))).on_tables] == [
        113
    ]
    auditor = wire(pb_grpc.WalletServiceStub, "eve", "auditor")
    summary = await auditor.GetLedgerSummary(pb.GetLedgerSummaryRequest(), timeout=DEADLINE)
    assert [balance.amount_minor for balance in summary.imbalance] == [0]
    report = await auditor.AuditLedger(pb.AuditLedgerRequest(), timeout=DEADLINE)
    assert report.clean, report.faults
    # Two deposits, two buy-ins, two antes, two bets, win and rake: ten transfers, two entries each.
    assert report.entries_checked == 20


async def test_only_the_table_service_moves_chips_at_tables(wire):
    for caller in (
        wire(pb_grpc.TableLedgerServiceStub, "op", "operator", "finance", "player"),
        wire(pb_grpc.TableLedgerServiceStub, as_service="history"),
    ):
        for method, request in TABLE_CALLS:
            fault = await reason_of(getattr(caller, method)(request(), timeout=DEADLINE))
            assert fault.reason == "PERMISSION_DENIED", method


async def test_an_operator_limits_a_players_day(wire, house):
    desk = wire(pb_grpc.WalletServiceStub, "op", "operator")
    limits = pb.PlayerLimits(currency="EUR", deposit_day_max_minor=1_000, buy_in_day_max_minor=500)
    asked = pb.SetPlayerLimitsRequest(name="players/ann", limits=limits, reason="as ann asked")
    assert list((await desk.SetPlayerLimits(asked, timeout=DEADLINE)).player.limits) == [limits]
    ann = wire(pb_grpc.WalletServiceStub, "ann", "player")
    seen = await ann.GetPlayer(pb.GetPlayerRequest(name="players/ann"), timeout=DEADLINE)
    assert list(seen.player.limits) == [limits]
    more = pb.DepositRequest(request_id="more", player="players/ann", currency="EUR", amount_minor=1)
    fault = await reason_of(desk.Deposit(more, timeout=DEADLINE))
    assert (fault.reason, fault.metadata["left_minor"]) == ("LIMIT_EXCEEDED", "0")


async def test_players_and_operators_end_no_reservation(wire):
    for roles, allowed in {("player",): set(), ("operator",): {"GetReservation", "ListReservations"}}.items():
        caller = wire(pb_grpc.ReservationServiceStub, "pat", *roles)
        for method, request in RESERVATION_CALLS:
            if method not in allowed:
                fault = await reason_of(getattr(caller, method)(request(), timeout=DEADLINE))
                assert fault.reason == "PERMISSION_DENIED", method


async def test_a_cashier_outside_confirms_a_buy_in(wire, house):
    table = wire(pb_grpc.ReservationServiceStub, as_service="table")
    cashier = wire(pb_grpc.ReservationServiceStub, "fin", "finance")
    asked = RESERVE | {"batch_id": "r", "sitting": "late", "amount_minor": 70, "seat": 4}
    made = (await table.ReserveBuyIn(pb.ReserveBuyInRequest(**asked), timeout=DEADLINE)).reservation
    assert (made.player, made.seat, made.amount_minor, made.state) == (
        "players/ann",
        4,
        70,
        pb.RESERVATION_STATE_OPEN,
    )
    assert made.expire_time.ToMilliseconds() - made.create_time.ToMilliseconds() == 60_000
    ann = wire(pb_grpc.WalletServiceStub, "ann", "player")
    balances = await ann.GetBalances(pb.GetBalancesRequest(player="players/ann"), timeout=DEADLINE)
    assert [balance.amount_minor for balance in balances.reserved] == [70]
    listed = await cashier.ListReservations(pb.ListReservationsRequest(page_size=1), timeout=DEADLINE)
    assert ([each.reservation for each in listed.reservations], listed.next_page_token) == (["r"], "")
    end = pb.CommitReservationRequest(**END)
    assert (await cashier.CommitReservation(end, timeout=DEADLINE)).stack_minor == 70
    known = await table.GetReservation(pb.GetReservationRequest(table="tables/t1", reservation="r"), timeout=DEADLINE)
    assert known.reservation.state == pb.RESERVATION_STATE_COMMITTED
    late = pb.ReleaseReservationRequest(**END | {"batch_id": "l"})
    fault = await reason_of(cashier.ReleaseReservation(late, timeout=DEADLINE))
    assert (fault.reason, fault.metadata["outcome"]) == ("RESERVATION_CLOSED", "committed")
    await table.ReserveBuyIn(
        pb.ReserveBuyInRequest(**asked | {"batch_id": "r2", "reservation": "r2", "sitting": "later"}), timeout=DEADLINE
    )
    no = pb.ReleaseReservationRequest(**END | {"batch_id": "n", "reservation": "r2"})
    assert (await cashier.ReleaseReservation(no, timeout=DEADLINE)).amount_minor == 70


async def test_a_player_makes_and_sees_only_itself(wire):
    ann = wire(pb_grpc.WalletServiceStub, "ann", "player")
    mine = pb.CreatePlayerRequest(request_id="r", player_id="ann", display_name="Ann")
    assert (await ann.CreatePlayer(mine, timeout=DEADLINE)).player.state == pb.PLAYER_STATE_ACTIVE
    other = pb.CreatePlayerRequest(request_id="r2", player_id="bob", display_name="Bob")
    for call in (
        ann.CreatePlayer(other, timeout=DEADLINE),
        ann.GetPlayer(pb.GetPlayerRequest(name="players/bob"), timeout=DEADLINE),
        ann.GetBalances(pb.GetBalancesRequest(player="players/bob"), timeout=DEADLINE),
        ann.ListEntries(pb.ListEntriesRequest(player="players/bob"), timeout=DEADLINE),
        ann.Deposit(pb.DepositRequest(request_id="d", player="players/ann", currency="EUR", amount_minor=1)),
        ann.Withdraw(pb.WithdrawRequest(request_id="w", player="players/ann", currency="EUR", amount_minor=1)),
        ann.AdjustBalance(pb.AdjustBalanceRequest(**ADJUST)),
        ann.SetPlayerState(pb.SetPlayerStateRequest(name="players/ann", state=1, reason="x")),
        ann.SetPlayerLimits(pb.SetPlayerLimitsRequest(name="players/ann", reason="x")),
        ann.GetLedgerSummary(pb.GetLedgerSummaryRequest()),
        ann.GetHand(pb.GetHandRequest(table="tables/t1", hand=1)),
        ann.AuditLedger(pb.AuditLedgerRequest()),
    ):
        assert (await reason_of(call)).reason == "PERMISSION_DENIED"
    taken = pb.CreatePlayerRequest(request_id="r3", player_id="bob", display_name="ANN")
    operator = wire(pb_grpc.WalletServiceStub, "op", "operator")
    assert (await reason_of(operator.CreatePlayer(taken, timeout=DEADLINE))).reason == "DISPLAY_NAME_TAKEN"
    twice = pb.CreatePlayerRequest(request_id="r4", player_id="ann", display_name="Ann2")
    assert (await reason_of(operator.CreatePlayer(twice, timeout=DEADLINE))).reason == "PLAYER_EXISTS"


async def test_garbage_is_answered_with_the_fields_name_and_changes_nothing(wire, ledger):
    table = wire(pb_grpc.TableLedgerServiceStub, as_service="table")
    desk = wire(pb_grpc.WalletServiceStub, "op", "operator", "finance")
    held = wire(pb_grpc.ReservationServiceStub, as_service="table")
    for stub, calls in ((table, TABLE_GARBAGE), (desk, WALLET_GARBAGE), (held, RESERVATION_GARBAGE)):
        for method, request, field in calls:
            fault = await reason_of(getattr(stub, method)(request, timeout=DEADLINE))
            assert (fault.reason, fault.metadata.get("field")) == ("INVALID_REQUEST", field), (method, request)
    summary = await ledger.get_ledger_summary()
    assert (summary.batches, summary.totals) == (0, ())


async def test_what_is_unknown_is_named(wire):
    desk = wire(pb_grpc.WalletServiceStub, "op", "operator", "finance")
    deposit = pb.DepositRequest(request_id="d", player="players/nobody", currency="EUR", amount_minor=1)
    for call in (
        desk.Deposit(deposit, timeout=DEADLINE),
        desk.GetPlayer(pb.GetPlayerRequest(name="players/nobody"), timeout=DEADLINE),
        desk.GetBalances(pb.GetBalancesRequest(player="players/nobody"), timeout=DEADLINE),
        desk.ListEntries(pb.ListEntriesRequest(player="players/nobody"), timeout=DEADLINE),
    ):
        fault = await reason_of(call)
        assert (fault.reason, fault.metadata["player"]) == ("PLAYER_NOT_FOUND", "nobody")


async def test_reports_on_the_wire(wire, house):
    await house.play(1)
    desk = wire(pb_grpc.WalletServiceStub, "op", "operator")
    long_ago, soon = Timestamp(seconds=1), Timestamp(seconds=int(time.time()) + 60)
    year_ago = Timestamp(seconds=soon.seconds - 365 * 86_400)
    rake = await desk.GetRakeReport(pb.GetRakeReportRequest(since=year_ago, before=soon), timeout=DEADLINE)
    assert [(row.table, row.rake_minor, row.hands) for row in rake.rows] == [("tables/t1", 1, 1)]
    chips = await desk.ListChipsInPlay(pb.ListChipsInPlayRequest(page_size=1), timeout=DEADLINE)
    assert [(row.table, row.sittings, row.stacks_minor) for row in chips.tables] == [("tables/t1", 3, 1199)]
    assert chips.next_page_token == ""
    dormant = await desk.ListDormantBalances(pb.ListDormantBalancesRequest(idle_since=soon), timeout=DEADLINE)
    assert [balance.amount_minor for balance in dormant.totals] == [1800]
    then = await desk.GetBalances(pb.GetBalancesRequest(player="players/ann", at=long_ago), timeout=DEADLINE)
    assert [balance.amount_minor for balance in then.cash] == [0]
    for call in (
        desk.GetRakeReport(pb.GetRakeReportRequest(since=long_ago, before=soon), timeout=DEADLINE),
        desk.GetRakeReport(pb.GetRakeReportRequest(before=soon), timeout=DEADLINE),
        desk.ListChipsInPlay(pb.ListChipsInPlayRequest(page_token="'; --"), timeout=DEADLINE),
        desk.ListDormantBalances(pb.ListDormantBalancesRequest(), timeout=DEADLINE),
    ):
        assert (await reason_of(call)).reason == "INVALID_REQUEST"
