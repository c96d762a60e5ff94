"""The lobby: what its rows tell, filters and pages, its watchers, and templates that follow demand."""

from __future__ import annotations

import asyncio
from typing import Any

from fivedraw.table.v1 import table_pb2, table_service_pb2

from services.runtime.auth import acting_as
from services.table.templates import TemplateKeeper
from tests.simulation.house import OPERATOR
from tests.simulation.seated import Tester, on_virtual_time, refused

pb = table_service_pb2


@on_virtual_time
async def test_the_lobby_tells_what_a_player_chooses_by(tester: Tester) -> None:
    await tester.open("casadela")
    players = await tester.seated(2, buy_in=50_000)
    for _ in range(2):
        await tester.turn()
        await tester.play_out()
        await tester.until(lambda state: state.playing is None)
    row = (await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())).tables[0]
    assert (row.stakes, row.rulebook, row.seats_taken, row.seats_free) == ("FL 500/1000", "rulebooks/casadela", 2, 4)
    assert row.average_pot_minor == 1_000
    assert row.hands_per_hour > 0
    assert (row.options.max_draw, row.options.losers, row.options.openers) == (5, "may_muck", "")
    assert players[0].player != players[1].player


@on_virtual_time
async def test_the_lobbys_pace_slackens_when_no_hand_ends(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    for _ in range(3):
        await tester.turn()
        await tester.play_out()
        await tester.until(lambda state: state.playing is None)
    last = await tester.state()
    for player in players:
        await player.ask("UpdateSeat", sitting_out=True)
    await asyncio.sleep(0)
    row = (await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())).tables[0]
    assert row.hands_per_hour > 100
    assert row.last_hand_time.ToMilliseconds() == last.recent_hands[-1][0]
    await asyncio.sleep(1_200)
    row = (await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())).tables[0]
    assert row.hands_per_hour <= 3


@on_virtual_time
async def test_the_lobby_filters_and_pages(tester: Tester) -> None:
    for number, book in enumerate(("house", "openers", "house", "american", "house")):
        await tester.house.open_table(f"t{number}", book)

    async def names(**fields: Any) -> list[str]:
        found, token = [], ""
        while True:
            request = pb.ListTablesRequest(page_size=2, page_token=token, **fields)
            page = await tester.house.as_person(OPERATOR, "ListTables", request)
            assert len(page.tables) <= 2
            found += [table.name.removeprefix("tables/") for table in page.tables]
            token = page.next_page_token
            if not token:
                return found

    assert await names() == ["t0", "t1", "t2", "t3", "t4"]
    assert await names(rulebook="rulebooks/house") == ["t0", "t2", "t4"]
    assert await names(min_stake_minor=2) == ["t0", "t1", "t2", "t4"]
    assert await names(max_stake_minor=1) == ["t3"]
    assert await names(currency="EUR") == []
    for stakes in ({"min_stake_minor": -1}, {"max_stake_minor": -1}, {"min_stake_minor": 5, "max_stake_minor": 4}):
        request = pb.ListTablesRequest(**stakes)
        await refused("INVALID_REQUEST", tester.house.as_person(OPERATOR, "ListTables", request))


@on_virtual_time
async def test_the_lobbys_watcher_sees_tables_open_change_and_close(tester: Tester) -> None:
    await tester.house.open_table("t1", "house")
    rows: list[table_pb2.Table] = []
    with acting_as(OPERATOR):
        stream = tester.house.any_replica().api.WatchLobby(pb.WatchLobbyRequest(), None)  # type: ignore[arg-type]

    async def record() -> None:
        async for response in stream:
            rows.extend(response.tables)

    task = asyncio.create_task(record())
    await asyncio.sleep(2)
    assert [row.name for row in rows] == ["tables/t1"]
    await tester.open()
    player = await tester.player()
    await player.sit(1)
    await asyncio.sleep(3)
    assert (rows[-1].name, rows[-1].seats_taken) == ("tables/t", 1)
    await tester.operator("CloseTable", reason="done")
    await asyncio.sleep(3)
    assert rows[-1].state == table_pb2.TABLE_STATE_CLOSED
    task.cancel()


@on_virtual_time
async def test_templates_open_tables_as_demand_asks_and_close_empty_ones(tester: Tester) -> None:
    keeper = TemplateKeeper(tester.house.any_replica().house)
    template = pb.Template(
        rulebook="rulebooks/house",
        currency="CHIPS",
        spare_tables=1,
        max_tables=2,
        overrides=table_pb2.GameOptions(seats=2),
    )
    made = await tester.operator("CreateTemplate", template_id="duel", template=template)
    assert made.template.open_tables == 0

    async def tables() -> list[str]:
        await keeper.tend()
        await asyncio.sleep(0.5)
        page = await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())
        return [table.name.removeprefix("tables/") for table in page.tables]

    assert await tables() == ["duel-1"]
    assert await tables() == ["duel-1"]
    tester.table = "duel-1"
    players = [await tester.player() for _ in range(2)]
    for player in players:
        await player.sit()
    assert await tables() == ["duel-1", "duel-2"]
    for player in players:
        await player.ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: not state.seats)
    assert await tables() == ["duel-1"]
    listed = await tester.house.as_person(OPERATOR, "ListTemplates", pb.ListTemplatesRequest())
    assert [(each.name, each.max_tables) for each in listed.templates] == [("templates/duel", 2)]
    await tester.house.as_person(OPERATOR, "DeleteTemplate", pb.DeleteTemplateRequest(name="templates/duel"))
    assert await tables() == []
