"""Streams never miss an event: resumed anywhere, served by another process, robbed of messages, or read too slowly."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator

import pytest
from fivedraw.table.v1 import event_pb2, table_service_pb2_grpc
from fivedraw.table.v1 import table_service_pb2 as pb

from services.runtime.auth import Identity, acting_as
from services.runtime.errors import Fault
from services.table import fanout, watch
from services.table.grpc_api import TableApi
from tests.integration.table.house import WAIT_SECONDS, RunningHouse, next_id
from tests.integration.table.watching import watching

PRIVATE = ("your_cards", "your_discards", "your_actions")


async def change_seat(house: RunningHouse, player: str, sitting_out: bool, process: int = 0) -> None:
    """One commit with one event, and nothing that follows from it."""
    request = pb.UpdateSeatRequest(table="tables/oak", request_id=next_id(), sitting_out=sitting_out)
    await house.stub(player, process=process).UpdateSeat(request)


def public(event: event_pb2.TableEvent) -> bytes:
    """An event without what is for one viewer alone."""
    copy = event_pb2.TableEvent.FromString(event.SerializeToString())
    body = getattr(copy, str(copy.WhichOneof("body")))
    for name in PRIVATE:
        if name in body.DESCRIPTOR.fields_by_name:
            body.ClearField(name)
    return copy.SerializeToString(deterministic=True)


async def test_a_watcher_resumed_after_every_sequence_ends_with_the_same_view(house) -> None:
    await house.open_table("oak")
    stubs = {"ann": house.stub("ann"), "bob": house.stub("bob"), "observer": house.operator}
    async with (
        watching(stubs["ann"], "oak") as ann,
        watching(stubs["bob"], "oak") as bob,
        watching(stubs["observer"], "oak") as observer,
    ):
        await house.seat("oak", "ann", "bob")
        await house.play_hand("oak", "ann", "bob")
        seen = {"ann": ann, "bob": bob, "observer": observer}
        for each in seen.values():
            await each.until(lambda each=each: "hand_settled" in each.bodies())
    ends = {name: watched.bodies().index("hand_settled") + 1 for name, watched in seen.items()}
    assert len(set(ends.values())) == 1
    end = ends["ann"]
    for name, watched in seen.items():
        assert watched.gaps == []
        # What everybody may see is the same for all, number by number.
        assert [public(event) for event in watched.events[:end]] == [public(each) for each in ann.events[:end]]
        for after in range(1, end):
            async with watching(stubs[name], "oak", after, 1) as again:
                await again.until(lambda again=again: again.sequence >= end)
                assert again.events[: end - after] == watched.events[after:end], (name, after)
    dealt = {name: list(_dealt(watched.events).your_cards) for name, watched in seen.items()}
    assert len(dealt["ann"]) == len(dealt["bob"]) == 5
    assert dealt["observer"] == []
    assert not set(dealt["ann"]) & set(dealt["bob"])


def _dealt(events: list[event_pb2.TableEvent]) -> event_pb2.CardsDealt:
    return next(event.cards_dealt for event in events if event.WhichOneof("body") == "cards_dealt")


async def test_what_cannot_be_resumed_begins_with_a_snapshot_that_says_why(house) -> None:
    await house.open_table("oak")
    await house.seat("oak", "ann")
    for after, epoch, reason in ((99, 1, "not come that far"), (1, 7, "epoch")):
        async with watching(house.stub("ann"), "oak", after, epoch) as watched:
            await watched.until(lambda watched=watched: watched.snapshots)
            assert reason in watched.snapshots[0].reason
            assert watched.snapshots[0].your_seat == 1


async def test_a_log_that_is_gone_is_a_snapshot(house) -> None:
    await house.open_table("oak")
    await house.seat("oak", "ann")
    await change_seat(house, "ann", True)
    await house.processes[0].store._redis.delete("fd:{oak}:log")
    async with watching(house.stub("ann"), "oak", 1, 1) as watched:
        await watched.until(lambda: watched.snapshots)
        assert "log" in watched.snapshots[0].reason


async def test_a_process_hears_what_another_commits(open_house, monkeypatch) -> None:
    # No heartbeat can come to help.
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 600)
    house = await open_house(processes=2)
    await house.open_table("oak", interval_ms=600_000)
    await house.seat("oak", "ann")
    async with watching(house.stub("ann", process=1), "oak") as watched:
        await watched.until(lambda: watched.snapshots)
        start = watched.sequence
        async with asyncio.timeout(WAIT_SECONDS):
            for number in itertools.count():
                await change_seat(house, "ann", number % 2 == 0, process=0)
                if watched.sequence > start:
                    break
        assert watched.gaps == []


@pytest.mark.parametrize("seed", range(3))
async def test_messages_lost_on_the_way_are_read_from_the_log(open_house, monkeypatch, seed) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.2)
    house = await open_house(processes=2)
    subscriptions = house.processes[1].store._subscriptions
    hand_out, dropped = subscriptions._hand_out, []

    def lossy(channel, batch) -> None:
        if rng.random() < 0.5:
            dropped.append(batch)
        else:
            hand_out(channel, batch)

    monkeypatch.setattr(subscriptions, "_hand_out", lossy)
    await house.open_table("oak", interval_ms=600_000)
    await house.seat("oak", "ann")
    async with watching(house.stub("ann", process=1), "oak") as watched:
        await watched.until(lambda: watched.snapshots)
        start = watched.sequence
        for number in range(40):
            await change_seat(house, "ann", number % 2 == 0, process=0)
        last = (await house.view("oak")).sequence
        await watched.until(lambda: watched.sequence == last)
        assert last >= start + 40
        assert watched.gaps == []
        assert len(watched.snapshots) == 1, "nothing was so far gone that it needed a new snapshot"
    assert len(dropped) > 5, "the test lost nothing"


async def test_a_slow_watcher_is_let_go_with_a_place_to_resume_and_slows_nobody(house, monkeypatch) -> None:
    monkeypatch.setattr(fanout, "WATCHER_QUEUE_MAX", 8)
    await house.open_table("oak", interval_ms=600_000)
    await house.seat("oak", "ann")
    api = TableApi(house.processes[0].house, house.sealer)
    with acting_as(Identity("person", "ann", frozenset({"player"}))):
        stream = await api.viewing("players/ann", pb.WatchTableRequest(table="tables/oak"))
        first = await anext(stream)
        for number in range(20):  # nobody reads meanwhile, and every one of these is answered
            await change_seat(house, "ann", number % 2 == 0)
        told = [first.snapshot.sequence]
        with pytest.raises(Fault) as caught:
            await _read_all(stream, told)
    assert caught.value.reason == "SLOW_CONSUMER"
    resume = int(caught.value.metadata["resume_after"])
    assert told == list(range(told[0], resume + 1))
    assert resume < first.snapshot.sequence + 20
    async with watching(house.stub("ann"), "oak", resume, int(caught.value.metadata["epoch"])) as again:
        await again.until(lambda: again.sequence >= first.snapshot.sequence + 20)
        assert again.gaps == []


async def _read_all(stream: AsyncIterator[pb.WatchTableResponse], told: list[int]) -> None:
    async for response in stream:
        told += [event.sequence for event in response.events]


async def test_a_stream_ends_when_its_token_ends(house, token, channel) -> None:
    await house.open_table("oak")
    opened = channel(house.processes[0].server, token=token("ann", "player", lifetime_seconds=1))
    async with watching(table_service_pb2_grpc.TableServiceStub(opened), "oak") as watched:
        with pytest.raises(Fault) as caught:
            await watched.until(lambda: False)
        assert caught.value.reason == "UNAUTHENTICATED"


async def test_streams_of_one_caller_are_bounded(open_house) -> None:
    house = await open_house(streams_per_caller_max=2)
    await house.open_table("oak")
    async with watching(house.stub("ann"), "oak") as one, watching(house.stub("ann"), "oak") as two:
        await one.until(lambda: one.snapshots)
        await two.until(lambda: two.snapshots)
        async with watching(house.stub("ann"), "oak") as three:
            with pytest.raises(Fault) as caught:
                await three.until(lambda: three.snapshots)
            assert caught.value.reason == "TOO_MANY_STREAMS"
