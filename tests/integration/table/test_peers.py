"""What the table makes of its peers' refusals: the real wallet and deck answer, and no table is ever stuck on them."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2
from google.protobuf.duration_pb2 import Duration

from services.runtime.errors import Fault
from services.table import seating
from tests.integration.table.house import RunningHouse, next_id, until
from tests.integration.table.watching import watching


async def freeze(house: RunningHouse, player: str) -> None:
    request = wallet_service_pb2.SetPlayerStateRequest(
        name=f"players/{player}",
        state=wallet_service_pb2.PLAYER_STATE_FROZEN,
        reason="under review",
    )
    await house.wallet("fay", "finance").SetPlayerState(request)


async def reason_of(call) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return Fault.from_rpc(caught.value).reason


def asked(**fields) -> dict:
    return {"table": "tables/oak", "request_id": next_id(), **fields}


async def test_a_frozen_player_sits_out_and_the_others_play_on(house) -> None:
    await house.open_table("oak")
    async with watching(house.operator, "oak") as watched:
        await watched.until(lambda: watched.snapshots)
        for number, player in enumerate(("ann", "bob", "cid"), 1):
            await house.make_player(player)
            if player == "cid":
                await house.operator.PauseTable(pb.PauseTableRequest(**asked(reason="wait"), after_hand=True))
            await house.sit_down("oak", player, number)
        await freeze(house, "cid")
        await house.operator.ResumeTable(pb.ResumeTableRequest(**asked()))

        async def cid_is_out() -> bool:
            for player in ("ann", "bob", "cid"):
                view = await house.view("oak", player)
                if view.HasField("your_actions"):
                    await house.act("oak", player, view)
            return view.seats[2].sitting_out

        await until(cid_is_out)
        voided = [event.hand_voided for event in watched.events if event.WhichOneof("body") == "hand_voided"]
        assert len(voided) <= 1, "the hand that named the frozen player, and no other"
        await house.play_hand("oak", "ann", "bob")
    assert await house.faults() == []


async def test_a_buy_in_that_is_refused_frees_the_seat(house) -> None:
    await house.open_table("oak")
    await house.make_player("poor", 0)
    await house.make_player("ann")
    await freeze(house, "ann")
    sit_down = house.stub("poor").SitDown(pb.SitDownRequest(**asked(seat=1, buy_in_minor=500)))
    assert await reason_of(sit_down) == "INSUFFICIENT_FUNDS"
    sit_down = house.stub("ann").SitDown(pb.SitDownRequest(**asked(seat=1, buy_in_minor=500)))
    assert await reason_of(sit_down) == "PLAYER_FROZEN"
    assert list((await house.view("oak")).seats) == []
    assert await reason_of(house.sit_down("oak", "nobody-there", 1)) == "PLAYER_NOT_FOUND"
    await house.seat("oak", "bob")
    assert (await house.view("oak")).seats[0].player == "players/bob"


async def test_a_refusal_is_remembered_under_its_id(house) -> None:
    await house.open_table("oak")
    await house.make_player("poor", 0)
    request = pb.SitDownRequest(**asked(seat=1, buy_in_minor=500))
    for _ in range(2):
        assert await reason_of(house.stub("poor").SitDown(request)) == "INSUFFICIENT_FUNDS"


async def test_a_hand_void_before_its_deal_has_a_history_and_every_chip(house) -> None:
    await house.open_table("oak", action_clock=Duration(seconds=120))  # the cut is asked for first
    await house.seat("oak", "ann", "bob")
    _, view = await house.turn("oak", ["ann", "bob"])
    assert view.your_actions.cut
    voided = await house.operator.VoidHand(
        pb.VoidHandRequest(**asked(hand=view.hand, reason="a test")), metadata=house.seconded
    )
    assert dict(voided.stacks_minor) == {1: 500, 2: 500}
    again = house.operator.VoidHand(
        pb.VoidHandRequest(**asked(hand=view.hand, reason="a test")), metadata=house.seconded
    )
    assert await reason_of(again) == "HAND_CLOSED"

    async def is_asked_for() -> bool:
        return any(task.hand == view.hand for task in house.tasks.sent)

    await until(is_asked_for)
    await house.write_history()
    request = history_service_pb2.GetHandRequest(name=f"tables/oak/hands/{view.hand}")
    hand = (await house.history("ann").GetHand(request)).hand
    assert hand.outcome == table_pb2.HAND_OUTCOME_VOID
    told = next(event.hand_voided for event in hand.events if event.HasField("hand_voided"))
    assert (told.reason, told.by) == ("a test", "operators/olga and operators/otto")
    assert await house.faults() == []


async def test_a_void_hand_gives_back_what_was_bet(house) -> None:
    await house.open_table("oak", cut=False)
    await house.seat("oak", "ann", "bob")
    player, view = await house.turn("oak", ["ann", "bob"])
    await house.act("oak", player, view)
    voided = await house.operator.VoidHand(
        pb.VoidHandRequest(**asked(hand=1, reason="a test")), metadata=house.seconded
    )
    assert dict(voided.stacks_minor) == {1: 500, 2: 500}
    assert await house.faults() == []
    assert await house.play_hand("oak", "ann", "bob") >= 2


async def test_a_table_closed_with_a_carry_gives_it_back_and_cashes_everybody_out(house) -> None:
    await house.open_table("oak", "openers")
    await house.seat("oak", "ann", "bob", buy_in=500)
    await _pass_out(house)
    async with watching(house.operator, "oak") as watched:
        await watched.until(lambda: watched.snapshots)
        await house.operator.CloseTable(pb.CloseTableRequest(**asked(reason="the end")))

        async def is_closed() -> bool:
            for player in ("ann", "bob"):
                view = await house.view("oak", player)
                if view.HasField("your_actions"):
                    await house.act("oak", player, view)
            return "table_closed" in watched.bodies()

        await until(is_closed)
    assert not (await house.view("oak")).seats
    balances = [
        await house.wallet(player).GetBalances(wallet_service_pb2.GetBalancesRequest(player=f"players/{player}"))
        for player in ("ann", "bob")
    ]
    total = sum(each.amount_minor for balance in balances for each in balance.cash)
    assert total == 2 * 1_000_000
    assert await house.faults() == []


async def _pass_out(house: RunningHouse) -> None:
    """Checks hands through until one is passed out: then a carry waits for the next."""

    async def is_carried() -> bool:
        for player in ("ann", "bob"):
            view = await house.view("oak", player)
            if view.HasField("your_actions"):
                await house.act("oak", player, view)
        return view.carry_minor > 0

    await until(is_carried)


async def test_leaving_twice_is_answered_twice_and_paid_once(house) -> None:
    await house.open_table("oak")
    await house.seat("oak", "ann")
    request = pb.LeaveTableRequest(**asked())
    first = await house.stub("ann").LeaveTable(request)
    assert (first.amount_minor, first.after_hand) == (500, False)
    assert await house.stub("ann").LeaveTable(request) == first
    assert await reason_of(house.stub("ann").LeaveTable(pb.LeaveTableRequest(**asked()))) == "NOT_SEATED"
    assert await house.faults() == []


async def test_chips_bought_twice_at_once_do_not_pass_the_limit(house) -> None:
    await house.open_table("oak")
    most = (await house.view("oak")).table.options.buy_in_max_minor
    await house.seat("oak", "ann", buy_in=most - 100)
    top_ups = [house.stub("ann").TopUp(pb.TopUpRequest(**asked(amount_minor=100))) for _ in range(3)]
    results = await asyncio.gather(*top_ups, return_exceptions=True)
    taken = [each.stack_minor for each in results if isinstance(each, pb.TopUpResponse)]
    refused = [Fault.from_rpc(each).reason for each in results if isinstance(each, grpc.aio.AioRpcError)]
    assert (taken, refused) == ([most], ["BUY_IN_OUT_OF_RANGE"] * 2)


async def test_an_idle_carry_goes_back_to_those_who_paid_it(house, monkeypatch) -> None:
    monkeypatch.setattr(seating, "IDLE_CARRY_MS", 50)
    await house.open_table("oak", "openers")
    await house.seat("oak", "ann", "bob", buy_in=500)
    await _pass_out(house)
    async with watching(house.operator, "oak") as watched:
        await watched.until(lambda: watched.snapshots)
        await house.stub("bob").LeaveTable(pb.LeaveTableRequest(**asked()))

        async def is_refunded() -> bool:
            view = await house.view("oak", "ann")
            if view.HasField("your_actions"):
                await house.act("oak", "ann", view)
            return "carry_refunded" in watched.bodies() or (len(view.seats) == 1 and view.carry_minor == 0)

        await until(is_refunded)
    assert await house.faults() == []


async def test_a_rebuilt_table_keeps_the_answers_of_finished_requests(house) -> None:
    await house.open_table("oak", cut=False)
    await house.seat("oak", "ann", "bob")
    player, view = await house.turn("oak", ["ann", "bob"])
    action = house.action("oak", view)
    first = await house.stub(player).SubmitAction(action)
    await house.processes[0].house.parts.registry.raise_epoch("oak")
    # A process that has never seen this table compares it with the registry first.
    await house.add_process()
    rebuilt = await house.view("oak", process=1)
    assert rebuilt.table.epoch == first.epoch + 2, "the epoch that was raised is over too"
    assert [seat.stack_minor for seat in rebuilt.seats] == [500, 500], "the open hand is void and refunded"
    for process in (0, 1):
        assert await house.stub(player, process=process).SubmitAction(action) == first
    await house.play_hand("oak", "ann", "bob")
    assert await house.faults() == []
