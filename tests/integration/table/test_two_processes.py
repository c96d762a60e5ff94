"""Two processes serve the same tables at the same time, and there is still one line of history."""

from __future__ import annotations

import asyncio
import random

import grpc
import pytest
from fivedraw.table.v1 import table_service_pb2 as pb

from services.runtime.errors import Fault
from tests.integration.table.house import RunningHouse, next_id, until
from tests.integration.table.test_watching import public
from tests.integration.table.watching import watching

PLAYERS = ("ann", "bob", "cid")
# What may happen to anybody who is in a hurry at a table that two processes change.
EXPECTED = {"STALE_TURN", "NOT_YOUR_TURN", "WRONG_STAGE", "TABLE_BUSY"}


async def tried(call) -> str:
    """The reason of a refusal, or nothing."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        fault = Fault.from_rpc(error)
        return fault.reason if fault is not None else str(error.code())
    return ""


async def restless(house: RunningHouse, player: str, rng: random.Random, hands: int) -> set[str]:
    """Plays over both processes at random, sends actions twice at once, and changes its seat meanwhile."""
    reasons = set()
    while True:
        view = await house.view("oak", player, process=rng.randrange(2))
        if view.hand > hands:
            return reasons
        if view.HasField("your_actions"):
            action = house.action("oak", view)
            both = [house.stub(player, process=process).SubmitAction(action) for process in (0, 1)]
            told = await asyncio.gather(*(tried(call) for call in both))
            assert len(set(told) - {"TABLE_BUSY"}) <= 1, "the same action, the same answer"
            reasons |= set(told)
        elif rng.random() < 0.3:
            request = pb.UpdateSeatRequest(table="tables/oak", request_id=next_id(), auto_muck=rng.random() < 0.5)
            reasons.add(await tried(house.stub(player, process=rng.randrange(2)).UpdateSeat(request)))
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("seed", range(2))
async def test_two_processes_under_load_never_fork_the_history(open_house, seed) -> None:
    house = await open_house(processes=2)
    await house.open_table("oak")
    stubs = house.stub("ann", process=0), house.stub("bob", process=1)
    async with watching(stubs[0], "oak") as one, watching(stubs[1], "oak") as two:
        for each in (one, two):
            await each.until(lambda each=each: each.snapshots)
        await house.seat("oak", *PLAYERS)
        players = (restless(house, player, random.Random(f"{seed} {player}"), 5) for player in PLAYERS)
        reasons = set().union(*await asyncio.gather(*players))
        assert reasons - {""} <= EXPECTED
        last = (await house.view("oak")).sequence
        for each in (one, two):
            await each.until(lambda each=each: each.sequence >= last)
        assert one.gaps == two.gaps == []
        told = [public(event) for event in one.events[: last - 1]]
        assert told == [public(event) for event in two.events[: last - 1]]
        started = [event.hand for event in one.events if event.WhichOneof("body") == "hand_started"]
        assert started == list(range(1, len(started) + 1))
        assert len(started) >= 5
        bodies = one.bodies()
        assert "table_rebuilt" not in bodies, "nobody was behind the ledger"
        assert "hand_voided" not in bodies
    assert await house.faults() == []


async def test_of_two_players_only_one_gets_the_last_seat(open_house) -> None:
    house = await open_house(processes=2)
    await house.open_table("oak", seats=2)
    await house.seat("oak", "ann")
    for player in ("bob", "cid"):
        await house.make_player(player)
    calls = [
        house.stub(player, process=process).SitDown(
            pb.SitDownRequest(table="tables/oak", request_id=next_id(), seat=2, buy_in_minor=500)
        )
        for process, player in enumerate(("bob", "cid"))
    ]
    assert sorted(await asyncio.gather(*(tried(call) for call in calls))) == ["", "SEAT_TAKEN"]
    assert len((await house.view("oak")).seats) == 2
    assert await house.faults() == []


async def test_an_action_repeated_after_its_answer_was_lost_is_answered_the_same(open_house) -> None:
    house = await open_house(processes=2)
    await house.open_table("oak", cut=False)
    async with watching(house.operator, "oak") as watched:
        await watched.until(lambda: watched.snapshots)
        await house.seat("oak", "ann", "bob")
        for _ in range(4):
            player, view = await house.turn("oak", ["ann", "bob"])
            action = house.action("oak", view)
            lost = house.stub(player, process=0).SubmitAction(action)
            await asyncio.sleep(0)
            lost.cancel()  # whether it arrives is not known
            first = await house.stub(player, process=1).SubmitAction(action)
            assert await house.stub(player, process=0).SubmitAction(action) == first
            await watched.until(lambda first=first: watched.sequence >= first.sequence)
            own = watched.events[first.sequence - 1]
            assert own.sequence == first.sequence
            acted = [event for event in watched.events if _turn_of(event) == action.turn]
            assert acted == [own], "it was taken in once"


def _turn_of(event) -> int:
    body = event.WhichOneof("body")
    return getattr(event, body).turn if body in ("action_taken", "cards_discarded") else 0


async def test_the_same_id_for_another_action_is_a_conflict_on_either_process(open_house) -> None:
    house = await open_house(processes=2)
    await house.open_table("oak", cut=False)
    await house.seat("oak", "ann", "bob")
    player, view = await house.turn("oak", ["ann", "bob"])
    action = house.action("oak", view)
    await house.stub(player, process=0).SubmitAction(action)
    action.turn += 7
    for process in (0, 1):
        assert await tried(house.stub(player, process=process).SubmitAction(action)) == "ACTION_CONFLICT"


async def test_another_process_takes_up_what_one_left_when_it_ended(open_house) -> None:
    house = await open_house(processes=2)
    await house.open_table("oak", cut=False)
    await house.seat("oak", "ann", "bob")
    player, view = await house.turn("oak", ["ann", "bob"])
    await house.processes[0].house.stop()
    await house.stub(player, process=1).SubmitAction(house.action("oak", view))

    async def hand_two() -> bool:
        for each in ("ann", "bob"):
            seen = await house.view("oak", each, process=1)
            if seen.HasField("your_actions"):
                await tried(house.stub(each, process=1).SubmitAction(house.action("oak", seen)))
        return seen.hand >= 2

    await until(hand_two)
    assert await house.faults() == []
