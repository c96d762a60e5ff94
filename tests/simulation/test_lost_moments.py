"""What the moments that a store lost, or a void hand undid, leave of debts, top-ups, offers and the button."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fivedraw.table.v1 import table_pb2, table_service_pb2

from services.runtime.errors import Fault
from services.table.state import TableState
from tests.simulation.seated import BUY_IN, Seated, Tester, on_virtual_time

BLINDS = {table_pb2.FORCED_BET_KIND_POST: 10, table_pb2.FORCED_BET_KIND_DEAD_BLIND: 5}


async def dealt(tester: Tester, number: int) -> TableState:
    """The state in hand `number`, once its forced bets are in."""
    return await tester.until(
        lambda state: state.last_hand == number and state.hand is not None and state.hand.engine is not None
    )


async def sits_out_before_its_big_blind(tester: Tester) -> tuple[Seated, int]:
    """Six seats in hand 1; who would be the big blind of the next sits out from then on. That player and its seat."""
    await tester.open()
    players = await tester.seated(6)
    state = await dealt(tester, 1)
    # The third from the button.
    number = (state.hand.button - 1 + 3) % 6 + 1
    player = next(each for each in players if each.player == state.seats[number].player)
    await player.ask("UpdateSeat", sitting_out=True)
    return player, number


async def alone_between_hands(tester: Tester) -> tuple[Seated, Seated, int]:
    """Two have played a hand and the second sits out. Both, and the first one's stack."""
    await tester.open()
    first, second = await tester.seated(2)
    await dealt(tester, 1)
    await second.ask("UpdateSeat", sitting_out=True)
    await tester.play_out()
    return first, second, (await tester.until(lambda state: state.playing is None)).seats[1].stack


async def has_missed_both(tester: Tester) -> tuple[Seated, int, Seated]:
    """Six seats in hand 3; somebody sat both blinds out and asks to play again. That player, its seat, a witness."""
    player, number = await sits_out_before_its_big_blind(tester)
    witness = next(each for each in tester.players if each is not player)
    await witness.watch()
    for hand in (2, 3):
        await tester.play_out()
        await dealt(tester, hand)
    await player.ask("UpdateSeat", sitting_out=False)
    return player, number, witness


def forced(witness: Seated, number: int) -> list[tuple[int, int, int]]:
    """(hand, kind, amount) of all that a seat was seen to post."""
    bodies = [(event.hand, event.forced_bet_posted) for event in witness.events if event.HasField("forced_bet_posted")]
    return [(hand, body.kind, body.amount_minor) for hand, body in bodies if body.seat == number]


def both(hand: int) -> list[tuple[int, int, int]]:
    return [(hand, kind, amount) for kind, amount in BLINDS.items()]


@on_virtual_time
async def test_a_void_hand_gives_debts_of_blinds_back_with_the_chips(tester: Tester) -> None:
    player, number, witness = await has_missed_both(tester)
    await tester.play_out()
    await dealt(tester, 4)
    await tester.operator("VoidHand", hand=4, reason="a test")
    state = await dealt(tester, 5)
    assert forced(witness, number) == both(4) + both(5)
    assert state.seats[number].player == player.player


@on_virtual_time
async def test_a_void_hand_costs_nobody_a_blind_who_sat_it_out(tester: Tester) -> None:
    _, number = await sits_out_before_its_big_blind(tester)
    await tester.play_out()
    assert (await dealt(tester, 2)).seats[number].owes_blind
    await tester.operator("VoidHand", hand=2, reason="a test")
    state = await tester.until(lambda state: state.hand is None or state.hand.settled)
    assert not state.seats[number].owes_blind


@on_virtual_time
async def test_blinds_paid_in_a_hand_whose_end_was_lost_are_not_paid_again(tester: Tester) -> None:
    _, number, witness = await has_missed_both(tester)
    cut_deck, kept = tester.house.decks.cut_deck, []

    async def kept_before(*args: Any, **kwargs: Any) -> Any:
        # The hand has its number and its seats, and no forced bet yet.
        kept.append(tester.house.store.checkpoint())
        return await cut_deck(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tester.house.decks, "cut_deck", kept_before)
        await tester.play_out()
        await dealt(tester, 4)
    await tester.play_out()
    await tester.until(lambda state: state.playing is None)
    tester.house.store.roll_back(kept[0])
    await tester.until(lambda state: state.epoch == 2 and state.last_hand == 5 and state.hand.engine is not None)
    assert forced(witness, number) == both(4)


@on_virtual_time
async def test_who_paid_and_left_in_lost_moments_owes_nothing(tester: Tester) -> None:
    player, number, _ = await has_missed_both(tester)
    kept = tester.house.store.checkpoint()
    await tester.play_out()
    await dealt(tester, 4)
    await player.ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: number not in state.seats)
    tester.house.store.roll_back(kept)
    assert (await tester.until(lambda state: state.epoch == 2)).debts == ()


@on_virtual_time
async def test_who_sits_out_owes_still_after_hands_of_others_were_lost(tester: Tester) -> None:
    player, number, _ = await has_missed_both(tester)
    await player.ask("UpdateSeat", sitting_out=True)
    await tester.play_out()
    await tester.until(lambda state: state.playing is None)
    kept = tester.house.store.checkpoint()
    await dealt(tester, 4)
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == 4 and state.playing is None)
    tester.house.store.roll_back(kept)
    seat = (await tester.until(lambda state: state.epoch == 2)).seats[number]
    assert (seat.owes_blind, seat.owes_dead) == (True, True)


@on_virtual_time
async def test_a_newcomer_whose_buy_in_was_lost_by_the_store_owes_its_blind(tester: Tester) -> None:
    await tester.open()
    players = await tester.seated(4)
    await players[0].watch()
    await dealt(tester, 1)
    newcomer = await tester.player()
    buy_in = tester.house.ledger.buy_in

    async def then_lost(*args: Any, **kwargs: Any) -> Any:
        kept = tester.house.store.checkpoint()
        bought = await buy_in(*args, **kwargs)
        await players[0].ask("UpdateSeat", auto_muck=False)
        tester.house.store.roll_back(kept)
        return bought

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tester.house.ledger, "buy_in", then_lost)
        with pytest.raises(Fault, match="DEADLINE_EXCEEDED"):
            await newcomer.sit(6)
    state = await tester.until(lambda state: state.epoch == 2 and state.hand is not None and 6 in state.hand.seats)
    await dealt(tester, state.last_hand)
    assert forced(players[0], 6) == [(state.last_hand, table_pb2.FORCED_BET_KIND_POST, 10)]


async def top_up_through_a_loss(tester: Tester, *, of_all: bool) -> None:
    """The store loses all, or falls back to where a top-up was pending, just as the ledger has made it."""
    first, second, before = await alone_between_hands(tester)
    top_up = tester.house.ledger.top_up

    async def then_lost(*args: Any, **kwargs: Any) -> Any:
        kept = tester.house.store.checkpoint()
        topped = await top_up(*args, **kwargs)
        patched.undo()
        if of_all:
            tester.house.store.wipe()
        else:
            await second.ask("UpdateSeat", auto_muck=False)
            tester.house.store.roll_back(kept)
        return topped

    request = table_service_pb2.TopUpRequest(table=tester.name, request_id="the same", amount_minor=50)
    patched = pytest.MonkeyPatch()
    patched.setattr(tester.house.ledger, "top_up", then_lost)
    for _ in range(5):
        try:
            answer = await first.call("TopUp", request)
        except Fault as fault:
            assert fault.reason in {"DEADLINE_EXCEEDED", "SERVICE_UNAVAILABLE", "TABLE_BUSY"}, fault  # noqa: PT017
            await asyncio.sleep(1)
        else:
            break
    assert answer.stack_minor == before + 50
    assert (await tester.state()).seats[1].stack == before + 50
    # And once more, whatever was answered.
    assert (await first.call("TopUp", request)).stack_minor == before + 50


@on_virtual_time
async def test_a_top_up_asked_for_again_after_a_rebuild_is_made_once(tester: Tester) -> None:
    await top_up_through_a_loss(tester, of_all=False)


@on_virtual_time
async def test_a_top_up_asked_for_again_after_the_state_was_lost_is_made_once(tester: Tester) -> None:
    await top_up_through_a_loss(tester, of_all=True)


@on_virtual_time
async def test_a_top_up_asked_for_again_when_its_answer_is_long_forgotten_moves_nothing(tester: Tester) -> None:
    first, _, before = await alone_between_hands(tester)
    request = table_service_pb2.TopUpRequest(table=tester.name, request_id="the same", amount_minor=50)
    await first.call("TopUp", request)
    await first.ask("TopUp", amount_minor=7)
    for number in range(10):
        await first.ask("UpdateSeat", auto_muck=bool(number % 2))
    assert (await first.call("TopUp", request)).stack_minor == before + 57
    assert (await tester.state()).seats[1].stack == before + 57


@on_virtual_time
async def test_a_pause_gives_a_clock_again_whose_end_the_store_lost(tester: Tester) -> None:
    await tester.open()
    first, _ = await tester.seated(2)
    await tester.turn()
    tester.house.store.wipe()
    # The next commit leaves the clock as it is, and with it nothing says when it ends.
    await first.ask("UpdateSeat", auto_muck=False)
    await tester.operator("PauseTable", reason="a test")
    state = await tester.state()
    assert (state.epoch, state.clock.left_ms) == (1, state.clock.duration_ms)


@on_virtual_time
async def test_a_rebuild_offers_free_seats_to_who_waits_in_their_order(tester: Tester) -> None:
    await tester.open(seats=3)
    players = await tester.seated(3)
    waiting = [await tester.player() for _ in range(2)]
    for each in waiting:
        await each.ask("JoinWaitingList")
    await dealt(tester, 1)
    await players[2].ask("LeaveTable")
    await tester.play_out()
    await tester.until(lambda state: 3 not in state.seats)
    kept = tester.house.store.checkpoint()
    await dealt(tester, 2)
    await tester.passive(await tester.turn())
    tester.house.store.roll_back(kept)
    state = await tester.until(lambda state: state.epoch == 2)
    assert [(each.player, each.seat) for each in state.waiting] == [(waiting[0].player, 3), (waiting[1].player, 0)]


async def repeat_undone(tester: Tester, *, by_operator: bool) -> None:
    """A passed-out hand is dealt again, and that hand undone."""
    await tester.open(rulebook="openers")
    await tester.seated(3, buy_in=BUY_IN)
    hand = 0
    while True:
        hand += 1
        await dealt(tester, hand)
        await tester.play_out()
        state = await tester.until(lambda state: state.playing is None)
        if state.button_stays:
            break
    kept = tester.house.store.checkpoint()
    await dealt(tester, hand + 1)
    if by_operator:
        await tester.operator("VoidHand", hand=hand + 1, reason="a test")
    else:
        tester.house.store.roll_back(kept)
    again = await dealt(tester, hand + 2)
    assert (again.hand.button, again.hand.carry_in) == (state.button, state.carry)


@on_virtual_time
async def test_the_button_stays_for_a_repeated_deal_that_an_operator_undid(tester: Tester) -> None:
    await repeat_undone(tester, by_operator=True)


@on_virtual_time
async def test_the_button_stays_for_a_repeated_deal_that_a_rebuild_undid(tester: Tester) -> None:
    await repeat_undone(tester, by_operator=False)
