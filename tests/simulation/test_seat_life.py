"""The life of a seat (RULES, section 6), each line under its own name."""

from __future__ import annotations

import asyncio

from fivedraw.table.v1 import table_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from tests.simulation.house import BANKROLL
from tests.simulation.seated import BUY_IN, Seated, Tester, on_virtual_time, refused


@on_virtual_time
async def test_buy_in_lies_between_the_tables_limits(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    low = await refused("BUY_IN_OUT_OF_RANGE", player.sit(1, 199))
    assert (low.metadata["least"], low.metadata["most"]) == ("200", "1000")
    await refused("BUY_IN_OUT_OF_RANGE", player.sit(1, 1001))
    assert (await player.sit(1, 200)).stack_minor == 200


@on_virtual_time
async def test_a_seat_is_chosen_and_belongs_to_one_player(tester: Tester) -> None:
    await tester.open()
    first, second = await tester.player(), await tester.player()
    assert (await first.sit(4)).seat == 4
    await refused("SEAT_TAKEN", second.sit(4))
    await refused("SEAT_NOT_FOUND", second.sit(7))
    assert (await second.sit()).seat == 1


@on_virtual_time
async def test_one_player_has_one_seat_at_a_table(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    await player.sit(1)
    fault = await refused("ALREADY_SEATED", player.sit(2))
    assert fault.metadata["seat"] == "1"


@on_virtual_time
async def test_two_players_taking_the_last_seat(tester: Tester) -> None:
    await tester.open(seats=2)
    first, second, third = await tester.player(), await tester.player(), await tester.player()
    await first.sit(1)
    answers = await asyncio.gather(second.sit(), third.sit(), return_exceptions=True)
    refusals = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(refusals) == 1
    assert str(refusals[0]).startswith("SEAT_TAKEN")


@on_virtual_time
async def test_a_buy_in_that_the_wallet_refuses_frees_the_seat(tester: Tester) -> None:
    await tester.open(big_blind_minor=1_000_000)
    player = await tester.player()
    await refused("INSUFFICIENT_FUNDS", player.sit(1, 20_000_000))
    assert list((await player.view()).seats) == []
    assert (await tester.state()).seats == {}


@on_virtual_time
async def test_top_up_between_hands_is_at_once_and_at_most_to_the_maximum(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    await player.sit(1, 400)
    answer = await player.ask("TopUp", amount_minor=600)
    assert (answer.stack_minor, answer.after_hand) == (1000, False)
    await refused("BUY_IN_OUT_OF_RANGE", player.ask("TopUp", amount_minor=1))


@on_virtual_time
async def test_top_up_during_a_hand_waits_for_its_end(tester: Tester) -> None:
    await tester.open()
    first, second = await tester.seated(2)
    await tester.turn()
    answer = await first.ask("TopUp", amount_minor=100)
    assert (answer.stack_minor, answer.after_hand) == (BUY_IN, True)
    await tester.play_out()
    state = await tester.until(lambda state: state.last_hand == 2 and state.playing is not None)
    assert sum(seat.stack for seat in state.seats.values()) == 2 * BUY_IN + 100
    assert second.player != first.player


@on_virtual_time
async def test_who_sits_out_is_not_dealt_in_and_comes_back(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await tester.until(lambda state: state.hand is not None)
    await players[2].ask("UpdateSeat", sitting_out=True)
    await tester.play_out()
    state = await tester.until(lambda state: state.last_hand == 2 and state.hand is not None)
    assert state.hand.seats == (1, 2)
    await players[2].ask("UpdateSeat", sitting_out=False)
    await tester.play_out()
    state = await tester.until(lambda state: state.last_hand == 3 and state.hand is not None)
    assert 3 in state.hand.seats


@on_virtual_time
async def test_who_leaves_between_hands_is_cashed_out_at_once(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    await player.sit(1, 300)
    answer = await player.ask("LeaveTable")
    assert (answer.amount_minor, answer.after_hand) == (300, False)
    assert (await tester.state()).seats == {}


@on_virtual_time
async def test_a_noted_top_up_that_the_wallet_refuses_is_told(tester: Tester) -> None:
    await tester.open()
    first, _ = await tester.seated(2)
    await first.watch()
    await tester.turn()
    answer = await first.ask("TopUp", amount_minor=100)
    assert answer.after_hand
    cash = BANKROLL - BUY_IN
    withdraw = wallet_service_pb2.WithdrawRequest(
        request_id=tester.house.next_id(), player=first.player, currency="CHIPS", amount_minor=cash
    )
    await tester.house.cashier("Withdraw", withdraw)
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == 2)
    assert "top_up_refused" in [told.reason for told in first.saw("seat_changed")]
    assert first.saw("stack_changed") == []


@on_virtual_time
async def test_who_leaves_in_turn_is_folded_at_once_and_cashed_out_after_the_hand(tester: Tester) -> None:
    await tester.open()
    watcher, *_ = await tester.seated(3)
    await watcher.watch()
    leaver = await tester.turn()
    answer = await leaver.ask("LeaveTable")
    assert answer.after_hand
    await asyncio.sleep(0.01)
    assert [(told.kind, told.by_clock) for told in watcher.saw("action_taken")] == [(table_pb2.ACTION_KIND_FOLD, False)]
    state = await tester.state()
    seat = next(number for number, player in state.hand.players.items() if player == leaver.player)
    assert seat in state.hand.engine.folded_seats()
    await tester.play_out()
    await tester.until(lambda state: len(state.seats) == 2)


@on_virtual_time
async def test_who_leaves_in_the_draw_stands_pat_and_not_by_the_clock(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await players[0].watch()
    while not (await (await tester.turn()).view()).your_actions.discard:
        await tester.passive(await tester.turn())
    leaver = await tester.turn()
    await leaver.ask("LeaveTable")
    await asyncio.sleep(0.01)
    told = players[0].saw("cards_discarded")[-1]
    assert (told.count, told.by_clock) == (0, False)
    assert not any(seat.pat_by_clock for seat in (await players[0].view()).seats)
    await tester.play_out()
    assert {told.by_clock for told in players[0].saw("action_taken")} == {False}


@on_virtual_time
async def test_who_leaves_out_of_turn_is_folded_when_the_turn_comes(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    acting = await tester.turn()
    leaver = next(player for player in players if player is not acting)
    await leaver.ask("LeaveTable")
    state = await tester.state()
    assert state.hand.engine.folded_seats() == ()
    await tester.play_out()
    await tester.until(lambda state: len(state.seats) == 2)


async def one_all_in(tester: Tester) -> tuple[Seated, Seated]:
    """Two who watch, the first of them all-in, the other to act."""
    await tester.open()
    players = await tester.seated(2)
    for player in players:
        await player.watch()
    shover = await tester.turn()
    await shover.act(table_pb2.ACTION_KIND_RAISE, to_minor=BUY_IN)
    caller = await tester.turn()
    return shover, caller


@on_virtual_time
async def test_an_all_in_player_who_leaves_stays_live_to_the_showdown(tester: Tester) -> None:
    shover, caller = await one_all_in(tester)
    await shover.ask("LeaveTable")
    await caller.act(table_pb2.ACTION_KIND_CALL)
    await tester.play_out()
    ended = caller.saw("hand_ended")[-1]
    assert ended.outcome == table_pb2.HAND_OUTCOME_SHOWDOWN
    await tester.until(lambda state: state.seat_of(shover.player) is None)


@on_virtual_time
async def test_an_all_in_player_who_drops_stays_live_to_the_showdown(tester: Tester) -> None:
    shover, caller = await one_all_in(tester)
    await shover.hang_up()
    await tester.until(lambda state: not state.seat_of(shover.player).connected)
    await caller.act(table_pb2.ACTION_KIND_CALL)
    # Nobody is there to draw for it: the clock stands pat, and the hand goes to the showdown.
    await tester.until(lambda state: state.playing is None)
    ended = caller.saw("hand_ended")[-1]
    assert ended.outcome == table_pb2.HAND_OUTCOME_SHOWDOWN
    assert sum(ended.stacks_minor.values()) == 2 * BUY_IN


@on_virtual_time
async def test_coming_back_takes_at_least_the_stack_one_left_with(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    await player.sit(1, 900)
    await player.ask("LeaveTable")
    fault = await refused("REENTRY_BELOW_LEFT_STACK", player.sit(1, 500))
    assert fault.metadata["least"] == "900"
    assert (await player.sit(1, 900)).stack_minor == 900


@on_virtual_time
async def test_after_two_hours_any_buy_in_will_do(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    await player.sit(1, 900)
    await player.ask("LeaveTable")
    await asyncio.sleep(121 * 60)
    assert (await player.sit(1, 200)).stack_minor == 200


@on_virtual_time
async def test_two_missed_clocks_in_a_row_sit_a_player_out(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await players[0].watch()
    state = await tester.until(lambda state: any(seat.sitting_out for seat in state.seats.values()), 600)
    told = [each for each in players[0].saw("seat_changed") if each.reason == "missed_clocks"]
    assert told
    assert state.seats[told[0].seat.seat].missed_clocks == 2


@on_virtual_time
async def test_clocks_missed_with_an_action_between_them_are_not_in_a_row(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    await players[0].watch()
    late = await tester.turn()
    number = next(number for number, seat in (await tester.state()).seats.items() if seat.player == late.player)
    # A chosen action is an action, like one that was made in turn.
    await late.act(table_pb2.ACTION_KIND_CALL)
    await tester.passive(await tester.turn())
    await tester.until(lambda state: state.seats[number].missed_clocks == 1, 600)
    await late.ask("PreselectAction", hand=1, preselection=table_pb2.PRESELECTION_CHECK)
    while (state := await tester.state()).last_hand == 1 and state.playing is not None:
        if (acting := await tester.turn()) is late:
            break
        await tester.passive(acting)
    assert (await tester.state()).seats[number].missed_clocks == 0


@on_virtual_time
async def test_an_empty_stack_sits_out_until_it_is_filled(tester: Tester) -> None:
    await tester.open()
    await tester.seated(2)
    shover = await tester.turn()
    await shover.act(table_pb2.ACTION_KIND_RAISE, to_minor=BUY_IN)
    caller = await tester.turn()
    await caller.act(table_pb2.ACTION_KIND_CALL)
    await tester.play_out()
    state = await tester.until(lambda state: state.playing is None)
    broke = [seat for seat in state.seats.values() if seat.stack == 0]
    if not broke:
        return  # a split pot
    loser = next(player for player in tester.players if player.player == broke[0].player)
    assert broke[0].sitting_out
    await asyncio.sleep(5)
    assert (await tester.state()).playing is None
    await loser.ask("TopUp", amount_minor=BUY_IN)
    await tester.until(lambda state: state.last_hand == 2)


@on_virtual_time
async def test_who_asked_to_sit_out_and_tops_up_an_empty_stack_stays_out(tester: Tester) -> None:
    await tester.open()
    await tester.seated(2)
    shover = await tester.turn()
    await shover.act(table_pb2.ACTION_KIND_RAISE, to_minor=BUY_IN)
    caller = await tester.turn()
    await caller.act(table_pb2.ACTION_KIND_CALL)
    for player in tester.players:
        await player.ask("UpdateSeat", sitting_out=True)
    await tester.play_out()
    state = await tester.until(lambda state: state.playing is None)
    broke = next(seat for seat in state.seats.values() if seat.stack == 0)
    loser = next(player for player in tester.players if player.player == broke.player)
    await loser.ask("TopUp", amount_minor=BUY_IN)
    state = await tester.until(lambda state: state.seats[broke.number].stack == BUY_IN)
    assert state.seats[broke.number].sitting_out


@on_virtual_time
async def test_auto_rebuy_fills_an_empty_stack(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    for player in players:
        await player.ask("UpdateSeat", auto_rebuy_minor=400)
    shover = await tester.turn()
    await shover.act(table_pb2.ACTION_KIND_RAISE, to_minor=BUY_IN)
    await (await tester.turn()).act(table_pb2.ACTION_KIND_CALL)
    await tester.play_out()
    state = await tester.until(lambda state: state.last_hand == 2)
    stacks = sorted(seat.stack for seat in state.seats.values())
    assert stacks in ([400, 2 * BUY_IN], [BUY_IN, BUY_IN])


@on_virtual_time
async def test_auto_muck_is_the_players_own_setting(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(2)
    for player in players:
        answer = await player.ask("UpdateSeat", auto_muck=False)
        assert not answer.settings.auto_muck
    await players[0].watch()
    await tester.until(lambda state: state.hand is not None)
    await tester.play_out()
    assert len(players[0].saw("hand_shown")) == 2
    assert players[0].saw("hand_mucked") == []


@on_virtual_time
async def test_the_waiting_list_keeps_a_free_seat_for_the_first(tester: Tester) -> None:
    await tester.open(seats=2)
    first, second = await tester.seated(2)
    third, fourth = await tester.player(), await tester.player()
    assert (await third.ask("JoinWaitingList")).place == 1
    assert (await fourth.ask("JoinWaitingList")).place == 2
    await refused("ALREADY_SEATED", first.ask("JoinWaitingList"))
    await third.watch()
    await second.ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: any(each.seat for each in state.waiting))
    assert (await third.view()).your_offer.seat == 2
    assert not (await fourth.view()).HasField("your_offer")
    await asyncio.sleep(0.1)
    assert [each.your_offer.seat for each in third.saw("waiting_list_changed") if each.HasField("your_offer")] == [2]
    await refused("SEAT_TAKEN", fourth.sit())
    assert (await third.sit()).seat == 2
    assert (await fourth.view()).your_place == 1


@on_virtual_time
async def test_an_offer_that_is_not_taken_goes_to_the_next(tester: Tester) -> None:
    await tester.open(seats=2)
    _, second = await tester.seated(2)
    third, fourth = await tester.player(), await tester.player()
    for player in (third, fourth):
        await player.ask("JoinWaitingList")
    await second.ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: any(each.seat for each in state.waiting))
    await asyncio.sleep(31)
    await tester.until(lambda state: state.waiting and state.waiting[0].player == fourth.player, 10)
    assert (await fourth.view()).your_offer.seat == 2
    assert (await third.view()).your_place == 0


@on_virtual_time
async def test_nobody_waits_while_a_seat_is_free(tester: Tester) -> None:
    await tester.open()
    player = await tester.player()
    fault = await refused("SEATS_FREE", player.ask("JoinWaitingList"))
    assert fault.metadata["seat"] == "1"
    await refused("NOT_WAITING", player.ask("LeaveWaitingList"))


@on_virtual_time
async def test_who_waits_no_longer_gives_the_offer_to_the_next(tester: Tester) -> None:
    await tester.open(seats=2)
    _, second = await tester.seated(2)
    third, fourth = await tester.player(), await tester.player()
    for player in (third, fourth):
        await player.ask("JoinWaitingList")
    await second.ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: any(each.seat for each in state.waiting))
    await third.ask("LeaveWaitingList")
    assert (await fourth.view()).your_offer.seat == 2
