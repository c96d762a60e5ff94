"""A table process and its tables: what it keeps, what it lets go, and that nothing of it is left when it stops."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.table.v1 import table_service_pb2 as pb

from services.table import house as house_module
from tests.simulation.seated import Tester, on_virtual_time


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
