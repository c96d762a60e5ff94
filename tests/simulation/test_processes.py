"""A table process and its tables: what it keeps, what it lets go, and that nothing of it is left when it stops."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.table.v1 import table_service_pb2 as pb

from services.runtime.auth import acting_as
from services.runtime.database import DatabaseBusyError
from services.runtime.errors import Fault
from services.table import bus, seating
from services.table import house as house_module
from services.table.presence import RECONNECT_SECONDS
from services.table.registry import TableRecord
from services.table.watch import HEARTBEAT_SECONDS
from tests.simulation.seated import BUY_IN, Tester, on_virtual_time


@on_virtual_time
async def test_a_process_keeps_a_bounded_number_of_tables_and_closes_those_it_lets_go(tester: Tester) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house_module, "HOSTS_MAX", 2)
        house = tester.house.any_replica().house
        await tester.open()
        player = await tester.player()
        await player.sit(1)
        await player.watch()
        watched = await house.host(tester.table)
        for number in range(4):
            await tester.house.open_table(f"other-{number}", "house")
        first = await house.host("other-0")
        # It was let go and is hosted anew; the one that is watched stayed.
        assert await house.host(tester.table) is watched
        await house.host("other-1")
        await house.host("other-2")
        assert await house.host("other-0") is not first
        # What is still told of a table that was let go is told to nobody.
        first.arrived(player.player)
        first.departed(player.player)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "presence at other-0"]


@on_virtual_time
async def test_nothing_is_told_of_streams_that_end_with_their_process(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    for player in players:
        await player.watch()
    old = tester.house.any_replica()
    await tester.house.crash(old)
    for player in players:
        await player.hang_up()
    await asyncio.sleep(0.01)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("presence")]
    view = (await tester.house.as_person(players[0].identity, "GetTable", pb.GetTableRequest(name=tester.name))).view
    assert [seat.disconnected for seat in view.seats] == [False, False]


@on_virtual_time
async def test_a_history_is_asked_for_once_and_costs_no_commit_of_its_own(tester: Tester) -> None:
    await tester.open()
    await tester.seated(2)
    await tester.turn()
    await tester.play_out()
    parts = tester.house.any_replica().house.parts
    asked: list[int] = []
    patches = pytest.MonkeyPatch()
    real_open, failures = parts.decks.open_deck, [Fault("SERVICE_UNAVAILABLE", "the deck is away")] * 2

    async def open_deck(request: object) -> object:
        if failures:
            raise failures.pop()
        return await real_open(request)  # type: ignore[arg-type]

    patches.setattr(parts.decks, "open_deck", open_deck, raising=False)
    patches.setattr(tester.house, "send", lambda task: asked.append(task.hand) or True)
    settled = (await parts.store.load(tester.table)).at.version  # type: ignore[union-attr]
    state = await tester.until(lambda state: state.last_hand == 2 and state.hand is not None and state.hand.turn > 0)
    patches.undo()
    assert failures == []
    assert asked == [1]
    # The next hand's intent, then what came of opening, shuffling and dealing.
    assert (await parts.store.load(tester.table)).at.version == settled + 4  # type: ignore[union-attr]
    assert state.effects == ()
    await tester.house.work_all()


@on_virtual_time
async def test_who_sat_down_through_another_process_is_no_observer(tester: Tester) -> None:
    await tester.open(observers_max=0)
    here = tester.house.any_replica()
    elsewhere = await tester.house.add_replica()
    # Its sweeps end, so that it has the table as it was before for as long as it likes.
    await elsewhere.house.stop()
    player = await tester.player()
    await (await elsewhere.house.host(tester.table)).view_state()
    with acting_as(player.identity):
        await here.api.SitDown(
            pb.SitDownRequest(table=tester.name, request_id="sit", seat=1, buy_in_minor=BUY_IN),
            None,  # type: ignore[arg-type]
        )
    await player.watch(elsewhere)
    assert [snapshot.your_seat for snapshot in player.snapshots] == [1]


async def connections(tester: Tester) -> list[bool]:
    """Whether it was there, each time that the table told of a connection, from the log."""
    batches = await tester.house.store.read_log(tester.table, 1, 0, 500)
    told = [bus.public_event(entry, 0).seat_changed for batch in batches for entry in batch.entries]
    return [not each.seat.disconnected for each in told if each.reason == "connection"]


@on_virtual_time
async def test_of_streams_in_two_processes_either_may_end(tester: Tester) -> None:
    await tester.open()
    here = tester.house.any_replica()
    elsewhere = await tester.house.add_replica()
    player = await tester.player()
    await player.sit(1)
    await player.watch(here)
    first = player.stream
    await player.watch(elsewhere)
    assert first is not None
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.sleep(RECONNECT_SECONDS + 0.5)
    assert (await tester.state()).seats[1].connected
    await asyncio.sleep(60)
    # One says that its stream is gone, the other contradicts, and there it ends.
    assert await connections(tester) == [False, True]
    await player.hang_up()
    await asyncio.sleep(RECONNECT_SECONDS + 0.5)
    assert not (await tester.state()).seats[1].connected


@on_virtual_time
async def test_a_player_told_as_gone_unheard_is_told_as_there_by_the_next_heartbeat(tester: Tester) -> None:
    await tester.open()
    here = tester.house.any_replica()
    player = await tester.player()
    await player.sit(1)
    await player.watch(here)
    with pytest.MonkeyPatch.context() as patch:
        # What another process publishes of it is lost on the way.
        host = await here.house.host(tester.table)
        patch.setattr(host, "on_published", lambda batch: None)
        elsewhere = await tester.house.add_replica()
        await (await elsewhere.house.host(tester.table)).run(
            lambda draft: seating.connection(draft, player.player, connected=False)
        )
        assert not (await tester.state()).seats[1].connected
        await asyncio.sleep(HEARTBEAT_SECONDS + 1)
        assert (await tester.state()).seats[1].connected


@on_virtual_time
async def test_scans_go_on_after_the_registry_was_away(tester: Tester) -> None:
    await tester.open()
    scanned: list[str] = []
    house = tester.house.any_replica().house
    scan_one = house._scan_one

    async def noted(record: TableRecord) -> None:
        scanned.append(record.table_id)
        await scan_one(record)

    async def away(*_: object, **__: object) -> None:
        raise DatabaseBusyError("the registry is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house, "_scan_one", noted)
        with patch.context() as outage:
            outage.setattr(tester.house.databases["table"], "read", away)
            await asyncio.sleep(2 * house_module.SCAN_SECONDS)
            assert scanned == []
        await asyncio.sleep(2 * house_module.SCAN_SECONDS)
        assert scanned
