"""The life of a table: clocks, pauses, lobby, chat, watchers, templates; each promise under its own name."""

from __future__ import annotations

import asyncio
from typing import Any

from fivedraw.table.v1 import table_pb2, table_service_pb2
from google.protobuf.duration_pb2 import Duration

from services.runtime.auth import Identity, acting_as
from tests.simulation.house import OPERATOR
from tests.simulation.seated import BUY_IN, Tester, on_virtual_time, refused

pb = table_service_pb2


@on_virtual_time
async def test_the_clock_checks_if_that_is_free_and_else_folds(tester: Tester) -> None:
    await tester.open(time_bank=Duration(seconds=0))
    players = await tester.seated(2)
    await players[0].watch()
    await tester.turn()
    await tester.until(lambda state: state.last_hand == 2)
    acted = players[0].saw("action_taken")
    assert [(each.kind, each.by_clock) for each in acted] == [(table_pb2.ACTION_KIND_FOLD, True)]


@on_virtual_time
async def test_the_time_bank_runs_after_the_clock_and_grows_by_hands(tester: Tester) -> None:
    await tester.open(time_bank=Duration(seconds=10))
    await tester.seated(2)
    slow = await tester.turn()
    await asyncio.sleep(25)
    state = await tester.state()
    assert state.clock.on_bank
    await slow.act(table_pb2.ACTION_KIND_CALL)
    seat = (await tester.state()).seat_of(slow.player)
    assert 4_000 <= seat.time_bank_ms <= 6_000
    await tester.play_out()
    await tester.until(lambda state: state.playing is None)
    grown = (await tester.state()).seat_of(slow.player)
    assert grown.time_bank_ms == seat.time_bank_ms + 1_000


@on_virtual_time
async def test_a_missed_draw_clock_stands_pat_and_is_marked_as_such(tester: Tester) -> None:
    await tester.open(draw_clock=Duration(seconds=5))
    players = await tester.seated(2)
    await players[0].watch()
    await tester.passive(await tester.turn())
    await tester.passive(await tester.turn())
    await tester.until(lambda state: state.hand.engine.stage == "second_round")
    pats = players[0].saw("cards_discarded")
    assert [(each.count, each.by_clock) for each in pats] == [(0, True), (0, True)]
    view = await players[0].view()
    assert [(seat.drawn, seat.pat_by_clock) for seat in view.seats] == [(0, True), (0, True)]
    # `clocked`: who missed the draw clock may not bet or raise any more.
    legal = (await (await tester.turn()).view()).your_actions
    assert legal.check
    assert not legal.HasField("bet")


@on_virtual_time
async def test_a_lost_connection_is_given_time_once_a_turn(tester: Tester) -> None:
    await tester.open(time_bank=Duration(seconds=0), disconnect_time=Duration(seconds=15))
    players = await tester.seated(2)
    for player in players:
        await player.watch()
    lost = await tester.turn()
    other = next(player for player in players if player is not lost)
    await lost.hang_up()
    await asyncio.sleep(3)
    assert [each.reason for each in other.saw("seat_changed")] == ["connection"]
    assert [seat.disconnected for seat in (await other.view()).seats if seat.player == lost.player] == [True]
    await asyncio.sleep(19)
    state = await tester.state()
    assert state.hand.number == 1
    assert state.clock.extended
    await asyncio.sleep(16)
    assert [each.by_clock for each in other.saw("action_taken")] == [True]
    await lost.watch()
    await asyncio.sleep(1)
    assert not any(seat.disconnected for seat in (await other.view()).seats)


@on_virtual_time
async def test_a_pause_keeps_what_the_clock_had_left(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    await players[0].watch()
    acting = await tester.turn()
    await asyncio.sleep(12)
    await tester.operator("PauseTable", reason="fire alarm")
    await refused("TABLE_PAUSED", acting.act(table_pb2.ACTION_KIND_CALL))
    await asyncio.sleep(600)
    await tester.operator("ResumeTable")
    await asyncio.sleep(0.1)
    assert [each.reason for each in players[0].saw("table_paused")] == ["fire alarm"]
    resumed = players[0].events[-1]
    left_ms = resumed.table_resumed.turn.deadline.ToMilliseconds() - resumed.commit_time.ToMilliseconds()
    assert 7_000 <= left_ms <= 8_000
    await acting.act(table_pb2.ACTION_KIND_CALL)


@on_virtual_time
async def test_last_hand_the_table_pauses_after_it(tester: Tester) -> None:
    await tester.open()
    await tester.seated(2)
    await tester.turn()
    await tester.operator("PauseTable", reason="closing time", after_hand=True)
    assert (await tester.state()).mode == "open"
    await tester.play_out()
    state = await tester.until(lambda state: state.mode == "paused")
    await asyncio.sleep(30)
    assert (await tester.state()).last_hand == 1
    assert state.mode_reason == "closing time"
    await tester.operator("ResumeTable")
    await tester.until(lambda state: state.last_hand == 2)


@on_virtual_time
async def test_last_hand_for_the_whole_house(tester: Tester) -> None:
    await tester.open()
    await tester.house.open_table("other", "house")
    await tester.seated(2)
    await tester.turn()
    answer = await tester.operator("PauseHouse", reason="maintenance")
    assert (answer.tables, list(answer.unreached)) == (2, [])
    await tester.play_out()
    await tester.until(lambda state: state.mode == "paused")
    assert (await tester.operator("PauseHouse", resume=True)).tables == 2
    await tester.until(lambda state: state.last_hand == 2)


@on_virtual_time
async def test_closing_finishes_the_hand_and_cashes_everybody_out(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await players[0].watch()
    await tester.turn()
    await tester.operator("CloseTable", reason="renovation")
    newcomer = await tester.player()
    await refused("TABLE_CLOSED", newcomer.sit())
    await tester.play_out()
    await tester.until(lambda state: state.mode == "closed")
    await asyncio.sleep(0.5)
    left = players[0].saw("seat_left")
    assert sum(each.amount_minor for each in left) == 3 * BUY_IN
    assert [each.reason for each in players[0].saw("table_closed")] == ["renovation"]
    listed = await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())
    assert list(listed.tables) == []


@on_virtual_time
async def test_a_carry_goes_back_when_the_table_closes(tester: Tester) -> None:
    await tester.open("openers")
    players = await tester.seated(3)
    await players[0].watch()
    while (await tester.state()).carry == 0:
        await tester.turn()
        await tester.play_out()
        await tester.until(lambda state: state.playing is None)
    carry = (await tester.state()).carry
    await tester.operator("CloseTable", reason="enough")
    await tester.until(lambda state: state.mode == "closed")
    await asyncio.sleep(0.5)
    assert [each.amount_minor for each in players[0].saw("carry_refunded")] == [carry]
    assert (await tester.state()).carry == 0


@on_virtual_time
async def test_a_passed_out_pot_is_carried_and_played_for(tester: Tester) -> None:
    await tester.open("openers")
    players = await tester.seated(4)
    await players[0].watch()
    await tester.turn()
    for _ in range(4):
        await (await tester.turn()).act(table_pb2.ACTION_KIND_CHECK)
    await tester.turn()
    ended = players[0].saw("hand_ended")[0]
    assert (ended.outcome, ended.carry_minor) == (table_pb2.HAND_OUTCOME_PASSED_OUT, 40)
    first, second = players[0].saw("hand_started")
    assert second.button == first.button
    assert second.carry_minor == 40
    assert (await players[0].view()).pot_minor == 80
    assert (await tester.house.as_person(OPERATOR, "ListTables", pb.ListTablesRequest())).tables[0].carry_minor == 40


@on_virtual_time
async def test_a_void_hand_gives_every_chip_back(tester: Tester) -> None:
    await tester.open("american")
    players = await tester.seated(3, buy_in=50)
    await players[0].watch()
    while (await (await tester.turn()).view()).stage == table_pb2.STAGE_OPENING:
        await tester.passive(await tester.turn())
    view = await players[0].view()
    answer = await tester.operator("VoidHand", hand=view.hand, reason="misdeal")
    assert dict(answer.stacks_minor) == {1: 50, 2: 50, 3: 50}
    await asyncio.sleep(0.1)
    voided = players[0].saw("hand_voided")[0]
    assert (voided.reason, voided.by) == ("misdeal", "operators/the-operator")
    await refused("HAND_CLOSED", tester.operator("VoidHand", hand=view.hand, reason="again"))


@on_virtual_time
async def test_a_decided_hand_cannot_be_void(tester: Tester) -> None:
    await tester.open()
    await tester.seated(2)
    await (await tester.turn()).act(table_pb2.ACTION_KIND_FOLD)
    await refused("HAND_CLOSED", tester.operator("VoidHand", hand=1, reason="too late"))


@on_virtual_time
async def test_a_mucked_or_unshown_hand_can_be_shown_until_the_next_begins(tester: Tester) -> None:
    await tester.open(hand_interval=Duration(seconds=3))
    players = await tester.seated(2)
    await players[0].watch()
    folder = await tester.turn()
    winner = next(player for player in players if player is not folder)
    await folder.act(table_pb2.ACTION_KIND_FOLD)
    await tester.until(lambda state: state.playing is None)
    await refused("WRONG_STAGE", folder.act(table_pb2.ACTION_KIND_SHOW))
    cards = list((await winner.view()).your_cards)
    await winner.act(table_pb2.ACTION_KIND_SHOW)
    await asyncio.sleep(0.1)
    shown = players[0].saw("hand_shown")[0]
    assert (list(shown.cards), shown.voluntary) == (cards, True)
    await tester.until(lambda state: state.last_hand == 2)
    assert await tester.house.work_all() == []


@on_virtual_time
async def test_a_preselected_fold_is_played_when_the_turn_comes(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await players[0].watch()
    acting = await tester.turn()
    state = await tester.state()
    order = [state.hand.players[seat] for seat in state.hand.engine.seats]
    following = order[(order.index(acting.player) + 1) % 3]
    chooser = next(player for player in players if player.player == following)
    events = len(players[0].events)
    await chooser.ask("PreselectAction", hand=1, preselection=table_pb2.PRESELECTION_CHECK_FOLD)
    assert (await chooser.view()).your_preselection == table_pb2.PRESELECTION_CHECK_FOLD
    await asyncio.sleep(0.1)
    assert len(players[0].events) == events, "nobody is told"
    await acting.act(table_pb2.ACTION_KIND_RAISE, to_minor=30)
    await asyncio.sleep(0.1)
    kinds = [each.kind for each in players[0].saw("action_taken")]
    assert kinds == [table_pb2.ACTION_KIND_RAISE, table_pb2.ACTION_KIND_FOLD]
    assert (await chooser.view()).your_preselection == table_pb2.PRESELECTION_UNSPECIFIED


@on_virtual_time
async def test_a_choice_made_before_the_draw_is_used_up_by_the_draw(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    await players[0].watch()
    chooser = await tester.turn()
    await chooser.act(table_pb2.ACTION_KIND_RAISE, to_minor=20)
    await chooser.ask("PreselectAction", hand=1, preselection=table_pb2.PRESELECTION_CHECK_FOLD)
    caller = await tester.turn()
    await caller.act(table_pb2.ACTION_KIND_CALL)
    for _ in players:
        drawing = await tester.turn()
        assert (await drawing.view()).your_actions.discard
        assert (await drawing.view()).your_preselection == table_pb2.PRESELECTION_UNSPECIFIED
        await drawing.act(table_pb2.ACTION_KIND_DISCARD)
    if await tester.turn() is caller:
        await caller.act(table_pb2.ACTION_KIND_BET, to_minor=10)
    # With its new cards it is asked, though it might check or fold.
    assert await tester.turn() is chooser
    assert table_pb2.ACTION_KIND_FOLD not in [each.kind for each in players[0].saw("action_taken")]


@on_virtual_time
async def test_a_preselected_call_does_not_call_a_higher_bet(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    acting = await tester.turn()
    state = await tester.state()
    order = [state.hand.players[seat] for seat in state.hand.engine.seats]
    chooser = next(each for each in players if each.player == order[(order.index(acting.player) + 1) % 3])
    answer = await chooser.ask("PreselectAction", hand=1, preselection=table_pb2.PRESELECTION_CALL)
    assert answer.call_minor == 5  # the small blind completes to 10
    await acting.act(table_pb2.ACTION_KIND_RAISE, to_minor=30)
    assert await tester.turn() is chooser


@on_virtual_time
async def test_chat_is_off_unless_the_table_has_it_and_is_bounded(tester: Tester) -> None:
    await tester.open()
    player, other = await tester.seated(2)
    await refused("CHAT_OFF", player.ask("SendChat", text="hello"))
    tester.table = "talkative"
    await tester.open(chat=True)
    await player.sit(1)
    await player.watch()
    await refused("NOT_SEATED", other.ask("SendChat", text="let me in"))
    await refused("INVALID_REQUEST", player.ask("SendChat", text="x" * 201))
    for line in range(5):
        await player.ask("SendChat", text=f"line {line}")
    await refused("CHAT_TOO_FAST", player.ask("SendChat", text="one more"))
    await asyncio.sleep(11)
    await player.ask("SendChat", text="slowly")
    await asyncio.sleep(0.1)
    assert [each.text for each in player.saw("chat_sent")] == [*(f"line {line}" for line in range(5)), "slowly"]


@on_virtual_time
async def test_observers_are_limited_and_seated_players_are_not(tester: Tester) -> None:
    await tester.open(observers_max=1)
    seated = await tester.player()
    await seated.sit(1)
    first, second = await tester.player(), await tester.player()
    await first.watch()
    await second.watch()
    assert second.stream is not None
    fault = second.stream.exception()
    assert str(fault).startswith("TOO_MANY_STREAMS")
    second.stream = None
    await seated.watch()
    assert seated.snapshots
    # A second stream of the same player takes nobody's place, and the house's own people are not counted.
    api = tester.house.any_replica().api
    for viewer in (first.player, "", ""):
        stream = await api.viewing(viewer, pb.WatchTableRequest(table=tester.name))
        assert (await anext(stream)).HasField("snapshot")
        await stream.aclose()


@on_virtual_time
async def test_the_houses_own_people_see_nobodys_cards_whatever_they_are_called(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    await tester.turn()
    own = await players[0].view()
    namesake = Identity("person", players[0].identity.id, frozenset({"operator"}))
    view = (await tester.house.as_person(namesake, "GetTable", pb.GetTableRequest(name=tester.name))).view
    assert (len(own.your_cards), list(view.your_cards), view.your_seat) == (5, [], 0)


@on_virtual_time
async def test_a_feed_resumes_by_table_and_holds_no_private_part(tester: Tester) -> None:
    await tester.open()
    await tester.house.open_table("other", "house")
    players = await tester.seated(2)
    got: list[pb.WatchFeedResponse] = []

    async def feed(identity: Any, cursors: list[pb.FeedCursor]) -> None:
        with acting_as(identity):
            stream = tester.house.any_replica().api.WatchFeed(pb.WatchFeedRequest(cursors=cursors), None)  # type: ignore[arg-type]
            async for response in stream:
                got.append(response)

    cursors = [pb.FeedCursor(table=tester.name), pb.FeedCursor(table="tables/other")]
    task = asyncio.create_task(feed(players[0].identity, cursors))
    await tester.turn()
    await tester.play_out()
    await asyncio.sleep(1)
    task.cancel()
    events = [event for response in got if response.table == tester.name for event in response.update.events]
    assert {response.table for response in got} == {"tables/t", "tables/other"}
    for event in events:
        assert not event.cards_dealt.your_cards
        assert not event.turn_started.HasField("your_actions")
        assert not event.cards_drawn.your_cards
    last = events[-1]
    got.clear()
    resumed = pb.FeedCursor(table=tester.name, epoch=last.epoch, resume_after=last.sequence)
    task = asyncio.create_task(feed(players[0].identity, [resumed]))
    await asyncio.sleep(0.1)
    await tester.passive(await tester.turn())
    await asyncio.sleep(1)
    task.cancel()
    following = [event.sequence for response in got for event in response.update.events]
    assert following == list(range(last.sequence + 1, last.sequence + 1 + len(following)))
    assert following


@on_virtual_time
async def test_the_cut_is_the_players_own_entropy_or_none(tester: Tester) -> None:
    await tester.open("house")
    players = await tester.seated(3)
    await players[0].watch()
    cutter = await tester.turn()
    view = await cutter.view()
    assert view.your_actions.cut
    assert view.waiting == table_pb2.WAITING_CUT
    await cutter.act(table_pb2.ACTION_KIND_CUT, cut=b"my own dice")
    await asyncio.sleep(0.1)
    assert [each.cut_by for each in players[0].saw("deck_committed")] == [view.your_seat]
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == 2 and state.hand.engine is not None, 20)
    await asyncio.sleep(0.1)
    assert [each.cut_by for each in players[0].saw("deck_committed")][1:] == [0]


@on_virtual_time
async def test_a_repeated_action_gets_its_first_answer_and_other_content_is_refused(tester: Tester) -> None:
    await tester.open()
    await tester.seated(2)
    player = await tester.turn()
    view = await player.view()
    action = pb.Action(kind=table_pb2.ACTION_KIND_CALL)
    request = pb.SubmitActionRequest(table=tester.name, hand=1, turn=view.turn.turn, action_id="mine", action=action)
    first = await player.call("SubmitAction", request)
    assert await player.call("SubmitAction", request) == first
    request.action.kind = table_pb2.ACTION_KIND_FOLD
    await refused("ACTION_CONFLICT", player.call("SubmitAction", request))
