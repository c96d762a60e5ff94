"""Who posts what on coming in or back: newcomers, missed blinds, and who would not post."""

from __future__ import annotations

import asyncio

from fivedraw.table.v1 import table_pb2

from services.table.debts import REENTRY_MS
from tests.simulation.seated import Seated, Tester, on_virtual_time


@on_virtual_time
async def test_a_newcomer_posts_a_big_blind(tester: Tester) -> None:
    await tester.open()
    watcher, *_ = await tester.seated(4)
    await watcher.watch()
    await tester.until(lambda state: state.hand is not None)
    newcomer = await tester.player()
    await newcomer.sit(5)
    assert (await newcomer.view()).seats[4].waiting_for_blind
    await tester.play_out()
    state = await tester.until(lambda state: state.last_hand == 2 and state.hand.engine is not None)
    blinds = [bet for bet in watcher.saw("forced_bet_posted") if bet.seat == 5]
    order = [seat for seat in (1, 2, 3, 4, 5) if seat > state.hand.button] + [1, 2, 3, 4, 5]
    kind = {
        order[0]: table_pb2.FORCED_BET_KIND_SMALL_BLIND,
        order[1]: table_pb2.FORCED_BET_KIND_BIG_BLIND,
    }.get(5, table_pb2.FORCED_BET_KIND_POST)
    assert [bet.kind for bet in blinds] == [kind]


@on_virtual_time
async def test_a_newcomer_may_wait_for_the_big_blind(tester: Tester) -> None:
    await tester.open()
    watcher, *_ = await tester.seated(3)
    await watcher.watch()
    await tester.until(lambda state: state.hand is not None)
    newcomer = await tester.player()
    await newcomer.sit(4)
    await newcomer.ask("UpdateSeat", wait_for_blind=True)
    for hand in range(2, 8):
        await tester.play_out()
        state = await tester.until(lambda state, hand=hand: state.last_hand == hand and state.hand.engine is not None)
        if 4 in state.hand.seats:
            break
    first = next(bet for bet in watcher.saw("forced_bet_posted") if bet.seat == 4)
    assert first.kind == table_pb2.FORCED_BET_KIND_BIG_BLIND


async def absent_for_hands(tester: Tester, place: int, hands: int) -> tuple[Seated, int]:
    """Six seats; the one `place` seats left of the first hand's button sits out that many hands and is back. The
    player and the number of the last hand that it missed.
    """
    await tester.open()
    players = await tester.seated(6)
    await players[0].watch()
    state = await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
    seat = (state.hand.button - 1 + place) % 6 + 1
    absent = next(player for player in players if player.player == state.seats[seat].player)
    await absent.ask("UpdateSeat", sitting_out=True)
    for number in range(2, 2 + hands):
        await tester.play_out()
        state = await tester.until(lambda state, number=number: state.last_hand == number and state.hand is not None)
        await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
        assert seat not in state.hand.seats
    await absent.ask("UpdateSeat", sitting_out=False)
    return absent, seat


async def posted_in_next_hand(tester: Tester, seat: int) -> list[int]:
    """Plays the hand out; what the seat posts in the next one."""
    watcher = tester.players[0]
    number = (await tester.state()).last_hand
    before = len(watcher.events)
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == number + 1 and state.hand is not None)
    await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
    return [
        event.forced_bet_posted.kind
        for event in watcher.events[before:]
        if event.WhichOneof("body") == "forced_bet_posted" and event.forced_bet_posted.seat == seat
    ]


POST, DEAD = table_pb2.FORCED_BET_KIND_POST, table_pb2.FORCED_BET_KIND_DEAD_BLIND
SMALL, BIG = table_pb2.FORCED_BET_KIND_SMALL_BLIND, table_pb2.FORCED_BET_KIND_BIG_BLIND


@on_virtual_time
async def test_missed_blinds_are_posted_the_small_one_dead(tester: Tester) -> None:
    # Third from the button: the big blind of the second hand, the small one of the third.
    _, seat = await absent_for_hands(tester, place=3, hands=2)
    assert sorted(await posted_in_next_hand(tester, seat)) == sorted([POST, DEAD])
    assert await posted_in_next_hand(tester, seat) == []


async def back_in(tester: Tester, absent: Seated, seat: int, after_seconds: float = 0.0) -> None:
    """Leaves the table and sits down again."""
    await absent.ask("LeaveTable")
    await asyncio.sleep(after_seconds)
    await absent.sit(seat)
    assert (await tester.state()).seats[seat].owes_blind


@on_virtual_time
async def test_missed_blinds_are_owed_by_who_leaves_and_sits_down_again(tester: Tester) -> None:
    absent, seat = await absent_for_hands(tester, place=3, hands=2)
    await back_in(tester, absent, seat)
    # Once more: what came back with the seat goes with it again.
    await back_in(tester, absent, seat, after_seconds=60)
    assert sorted(await posted_in_next_hand(tester, seat)) == sorted([POST, DEAD])
    assert (await tester.state()).debts == ()
    # It is paid now.
    await absent.ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: seat not in state.seats)
    assert (await tester.state()).debts == ()


@on_virtual_time
async def test_missed_blinds_are_forgotten_with_the_stack(tester: Tester) -> None:
    absent, seat = await absent_for_hands(tester, place=3, hands=2)
    await tester.operator("PauseTable", reason="a long night")
    await absent.ask("LeaveTable")
    assert [debt.player for debt in (await tester.state()).debts] == [absent.player]
    await asyncio.sleep(REENTRY_MS / 1000 + 1)
    await absent.sit(seat)
    state = await tester.state()
    assert (state.seats[seat].owes_blind, state.seats[seat].owes_dead, state.debts) == (True, False, ())


@on_virtual_time
async def test_who_sits_out_while_no_blind_passes_by_posts_nothing(tester: Tester) -> None:
    _, seat = await absent_for_hands(tester, place=6, hands=1)
    assert await posted_in_next_hand(tester, seat) == []


@on_virtual_time
async def test_who_missed_the_small_blind_alone_posts_both_too(tester: Tester) -> None:
    # Second from the button: it has paid the first hand's big blind.
    _, seat = await absent_for_hands(tester, place=2, hands=1)
    assert sorted(await posted_in_next_hand(tester, seat)) == sorted([POST, DEAD])
    assert await posted_in_next_hand(tester, seat) == []


@on_virtual_time
async def test_who_missed_the_big_blind_and_is_back_for_the_small_one_waits_and_posts_both(tester: Tester) -> None:
    _, seat = await absent_for_hands(tester, place=3, hands=1)
    assert await posted_in_next_hand(tester, seat) == []
    assert seat not in (await tester.state()).hand.seats
    assert sorted(await posted_in_next_hand(tester, seat)) == sorted([POST, DEAD])
    assert await posted_in_next_hand(tester, seat) == []


async def posted_by_place(tester: Tester, first_button: int) -> dict[int, int]:
    """Plays the hand out; what is posted in the next one, by places left of the first hand's button."""
    watcher = tester.players[0]
    number = (await tester.state()).last_hand + 1
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == number and state.hand is not None)
    await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
    events = [event for event in watcher.events if event.hand == number]
    bets = [event.forced_bet_posted for event in events if event.WhichOneof("body") == "forced_bet_posted"]
    return {(bet.seat - first_button) % 6: bet.kind for bet in bets}


@on_virtual_time
async def test_leaving_before_the_big_blind_is_no_way_round_it_and_no_neighbour_pays_twice(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(6)
    await players[0].watch()
    state = await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
    button = state.hand.button
    seat = (button - 1 + 3) % 6 + 1
    # The big blind of the second hand, were it there.
    leaver = next(player for player in players if player.player == state.seats[seat].player)
    await leaver.ask("LeaveTable")
    assert await posted_by_place(tester, button) == {2: SMALL, 4: BIG}
    await leaver.sit(seat)
    # The button is left of it at last in the fourth hand; until then the blinds go on as if it were not there.
    assert await posted_by_place(tester, button) == {4: SMALL, 5: BIG}
    assert await posted_by_place(tester, button) == {5: SMALL, 0: BIG, 3: POST}
    assert await posted_by_place(tester, button) == {0: SMALL, 1: BIG}
    assert await posted_by_place(tester, button) == {1: SMALL, 2: BIG}
    assert await posted_by_place(tester, button) == {2: SMALL, 3: BIG}
    assert await posted_by_place(tester, button) == {3: SMALL, 4: BIG}


@on_virtual_time
async def test_a_newcomer_in_the_small_blinds_place_waits_until_the_button_has_passed(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(5)
    await players[0].watch()
    await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
    while (button := (await tester.state()).hand.button) != 4:
        await posted_by_place(tester, button)
    newcomer = await tester.player()
    await newcomer.sit(6)
    # Seats 1 and 2, and then 2 and 3: places 3, 4, 5 left of seat 4; seat 6 is place 2.
    assert await posted_by_place(tester, button) == {3: SMALL, 4: BIG}
    assert await posted_by_place(tester, button) == {4: SMALL, 5: BIG, 2: POST}
    assert await posted_by_place(tester, button) == {5: SMALL, 0: BIG}


@on_virtual_time
async def test_who_does_not_post_by_itself_sits_out_when_a_blind_is_due(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await players[0].watch()
    for player in players[1:]:
        await player.ask("UpdateSeat", auto_post=False)
    await tester.until(lambda state: state.hand is not None)
    await tester.play_out()
    await tester.until(lambda state: any(seat.sitting_out for seat in state.seats.values()))
    assert "would_not_post" in [each.reason for each in players[0].saw("seat_changed")]
