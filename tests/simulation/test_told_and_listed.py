"""What a table's players and the lobby's readers are told, with the real deck and ledger behind it."""

from __future__ import annotations

from fivedraw.table.v1 import table_pb2, table_service_pb2

from services.runtime.auth import acting_as
from tests.simulation.house import OPERATOR
from tests.simulation.seated import Tester, on_virtual_time, refused

pb = table_service_pb2


@on_virtual_time
async def test_a_reshuffle_is_told_with_its_number_and_its_root(tester: Tester) -> None:
    # Six seats that draw five cards each need 60; the stub holds 22.
    await tester.open("house", cut=False)
    players = await tester.seated(6)
    await players[0].watch()
    state = await tester.until(lambda state: state.hand is not None and state.hand.turn > 0)
    while state.hand.engine.stage == "first_round":
        await tester.passive(await tester.turn())
        state = await tester.until(lambda state: state.hand.turn > 0)
    for _ in range(6):
        drawer = await tester.turn()
        await drawer.act(table_pb2.ACTION_KIND_DISCARD, cards=list((await drawer.view()).your_cards))
    await tester.turn()
    assert [each.count for each in players[0].saw("cards_drawn")] == [5] * 6
    reshuffles = players[0].saw("deck_reshuffled")
    assert [each.number for each in reshuffles] == [1]
    # The fifth drawer takes the last two cards of the stub first; four seats' discards are shuffled.
    assert (reshuffles[0].dealt_before, reshuffles[0].cards, len(reshuffles[0].root)) == (2, 20, 32)


@on_virtual_time
async def test_a_table_is_opened_with_a_rulebook_and_overrides(tester: Tester) -> None:
    options = table_pb2.GameOptions(
        seats=4, small_blind_minor=10, big_blind_minor=25, betting=table_pb2.BETTING_POT_LIMIT, max_draw=3, chat=True
    )
    options.action_clock.FromMilliseconds(12_000)
    request = pb.CreateTableRequest(
        request_id="open-1", table_id=tester.table, rulebook="rulebooks/house", currency="CHIPS", overrides=options
    )
    opened = (await tester.house.as_person(OPERATOR, "CreateTable", request)).table
    assert (opened.stakes, opened.options.seats, opened.options.max_draw) == ("PL 10/25", 4, 3)
    assert opened.options.action_clock.ToMilliseconds() == 12_000
    assert opened.options.buy_in_min_minor == 20 * 25
    # What is not overridden is the rulebook's.
    assert (opened.options.losers, opened.options.cut, opened.options.chat) == ("may_muck", True, True)
    again = (await tester.house.as_person(OPERATOR, "CreateTable", request)).table
    assert again.name == opened.name
    wrong = table_pb2.GameOptions(seats=9, max_draw=9, small_blind_minor=50, big_blind_minor=10)
    request = pb.CreateTableRequest(
        request_id="open-2", table_id="other", rulebook="rulebooks/house", currency="CHIPS", overrides=wrong
    )
    fault = await refused("RULEBOOK_INVALID", tester.house.as_person(OPERATOR, "CreateTable", request))
    assert len([name for name in fault.metadata if name.startswith("fault.")]) >= 2, "every fault is named at once"


@on_virtual_time
async def test_the_lobby_tells_how_many_wait(tester: Tester) -> None:
    await tester.open(seats=2)
    await tester.seated(2)
    waiting = [await tester.player() for _ in range(2)]
    for player in waiting:
        await player.ask("JoinWaitingList")
    row = (await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())).tables[0]
    assert (row.waiting, row.seats_free, row.seats_taken) == (2, 0, 2)
    await waiting[0].ask("LeaveWaitingList")
    row = (await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())).tables[0]
    assert row.waiting == 1


@on_virtual_time
async def test_a_quiet_stream_has_heartbeats_that_say_where_it_stands(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    await player.sit(1)
    with acting_as(player.identity):
        stream = await tester.house.any_replica().api.viewing(player.player, pb.WatchTableRequest(table=tester.name))
    snapshot = (await anext(stream)).snapshot
    told = [await anext(stream) for _ in range(5)]
    beats = [each.heartbeat_sequence for each in told if each.heartbeat_sequence]
    assert len(beats) >= 3
    assert beats[-1] >= snapshot.sequence
    assert beats[-1] == (await tester.state()).sequence
    await stream.aclose()
