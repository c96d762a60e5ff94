"""What a table that was rebuilt still owes its players: promises, debts, wishes; and that nobody plays unasked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fivedraw.table.v1 import table_pb2

from tests.simulation.seated import BUY_IN, Seated, Tester, on_virtual_time


async def promised_top_up(tester: Tester) -> Seated:
    """Two who play; the first to act was promised 100 chips after the hand."""
    await tester.open()
    await tester.seated(2)
    player = await tester.turn()
    answer = await player.ask("TopUp", amount_minor=100)
    assert answer.after_hand
    return player


def chips(state: Any) -> int:
    return sum(seat.stack for seat in state.seats.values())


@on_virtual_time
async def test_a_noted_top_up_is_kept_after_a_rebuild(tester: Tester) -> None:
    await promised_top_up(tester)
    kept = tester.house.store.checkpoint()
    await tester.passive(await tester.turn())
    tester.house.store.roll_back(kept)
    state = await tester.until(lambda state: state.epoch == 2 and state.last_hand == 2)
    assert chips(state) == 2 * BUY_IN + 100


@on_virtual_time
async def test_a_noted_top_up_that_was_made_before_a_rebuild_is_not_made_again(tester: Tester) -> None:
    player = await promised_top_up(tester)
    kept = tester.house.store.checkpoint()
    await tester.play_out()
    await tester.until(lambda state: chips(state) == 2 * BUY_IN + 100)
    tester.house.store.roll_back(kept)
    state = await tester.until(lambda state: state.epoch == 2 and state.playing is not None)
    assert chips(state) == 2 * BUY_IN + 100
    assert not any(seat.top_up for seat in state.seats.values())
    # A promise of the new epoch is another one.
    assert (await player.ask("TopUp", amount_minor=50)).after_hand
    await tester.play_out()
    number = state.last_hand + 1
    state = await tester.until(lambda state: state.last_hand == number)
    assert chips(state) == 2 * BUY_IN + 150


@on_virtual_time
async def test_a_top_up_that_was_being_made_is_made_once_after_a_rebuild(tester: Tester) -> None:
    await promised_top_up(tester)
    house = tester.house
    top_up, kept = house.ledger.top_up, []

    async def noted_top_up(*asked: Any, **facts: Any) -> Any:
        stack = await top_up(*asked, **facts)
        # The ledger has made it, the table does not know yet.
        kept.append(house.store.checkpoint())
        return stack

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house.ledger, "top_up", noted_top_up)
        await tester.play_out()
        await tester.until(lambda state: chips(state) == 2 * BUY_IN + 100)
    house.store.roll_back(kept[0])
    state = await tester.until(lambda state: state.epoch == 2 and state.playing is not None)
    assert chips(state) == 2 * BUY_IN + 100


@on_virtual_time
async def test_debts_and_wishes_outlive_a_rebuild(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(3)
    await tester.turn()
    newcomer = await tester.player()
    await newcomer.sit(5)
    await newcomer.ask("UpdateSeat", wait_for_blind=True, auto_rebuy_minor=300)
    await players[2].ask("UpdateSeat", sitting_out=True, auto_muck=False)
    before = (await tester.state()).seats
    assert before[5].owes_blind
    kept = tester.house.store.checkpoint()
    await tester.passive(await tester.turn())
    tester.house.store.roll_back(kept)
    state = await tester.until(lambda state: state.epoch == 2)
    assert state.seats == before


@on_virtual_time
async def test_a_clock_whose_end_the_store_lost_runs_again(tester: Tester) -> None:
    await tester.open()
    first, _ = await tester.seated(2)
    for is_in_hand in (True, False):
        await tester.turn()
        if not is_in_hand:
            await tester.play_out()
            state = await tester.until(lambda state: state.clock is not None)
            assert state.clock.kind == "next_hand"
        tester.house.store.wipe()
        # The next commit leaves the clock as it is, and comes before anybody notices what the store has lost.
        await first.ask("UpdateSeat", auto_muck=is_in_hand)
        state = await tester.state()
        assert (state.epoch, state.clock is not None) == (1, True)
        # Nobody acts: the clock does, or begins the next hand.
        turns = state.turns
        await tester.until(lambda state, turns=turns: state.turns > turns or state.playing is None, 90)
        await tester.play_out()
        for player in tester.players:
            await player.ask("UpdateSeat", sitting_out=False)


@on_virtual_time
async def test_who_asked_for_nothing_is_not_dealt_in_after_the_state_was_lost(tester: Tester) -> None:
    await tester.open()
    first, second, third = await tester.seated(3)
    await first.watch()
    await tester.turn()
    tester.house.store.wipe()
    # Its stream is there, so it plays; whether the others want to, nobody knows.
    state = await tester.until(lambda state: state.epoch == 2 and not state.seats[1].sitting_out)
    assert [seat.sitting_out for seat in state.seats.values()] == [False, True, True]
    await asyncio.sleep(30)
    state = await tester.state()
    assert (state.playing, chips(state)) == (None, 3 * BUY_IN)
    await second.ask("UpdateSeat", sitting_out=False)
    state = await tester.until(lambda state: state.hand is not None and state.hand.engine is not None)
    assert state.hand.seats == (1, 2)
    await third.watch()
    await tester.play_out()
    for number in (3, 4):
        state = await tester.until(lambda state, number=number: state.last_hand == number and state.playing is not None)
        await tester.play_out()
    assert state.hand.seats == (1, 2, 3)
    # No blind that passed a seat by while the house held it is asked for.
    late = (table_pb2.FORCED_BET_KIND_POST, table_pb2.FORCED_BET_KIND_DEAD_BLIND)
    assert [bet for bet in first.saw("forced_bet_posted") if bet.seat == 3 and bet.kind in late] == []
