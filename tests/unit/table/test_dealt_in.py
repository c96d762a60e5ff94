"""Who is dealt into the next hand, where what seats wish leaves few of them, or some owe a big blind."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from fivedraw.table.v1 import table_pb2

from services.table import asks, opening
from tests.unit.table.scripted import Table, player_at

SMALL, BIG = table_pb2.FORCED_BET_KIND_SMALL_BLIND, table_pb2.FORCED_BET_KIND_BIG_BLIND
POST = table_pb2.FORCED_BET_KIND_POST
ALL = (1, 2, 3, 4, 5, 6)


def table_with(seats: tuple[int, ...], button: int, owing: tuple[int, ...], patient: tuple[int, ...] = ()) -> Table:
    """A table between hands: whose button the last one was, who owes a big blind, who waits for it to come."""
    table = Table("clocked", seats=6).sit(*seats)
    table.state.button = button
    for seat in (*owing, *patient):
        changed = msgspec.structs.replace(table.state.seats[seat], owes_blind=True, wait_for_blind=seat in patient)
        table.state.seats[seat] = changed
    return table


def posted(table: Table) -> dict[int, int]:
    """Deals the next hand: what each seat posts in it."""
    before = len(table.told)
    table.next_hand()
    events = [told.public for told in table.told[before:]]
    bets = [event.forced_bet_posted for event in events if event.WhichOneof("body") == "forced_bet_posted"]
    assert len({bet.seat for bet in bets}) == len(bets)
    return {bet.seat: bet.kind for bet in bets}


@pytest.mark.parametrize(
    ("owing", "patient", "dealt_in", "button", "posts"),
    [
        # The last button was seat 1: all six would be button 2, blinds 3 and 4.
        ((), (), ALL, 2, {3: SMALL, 4: BIG}),
        ((2,), (), ALL, 3, {4: SMALL, 5: BIG, 2: POST}),
        ((3,), (), (1, 2, 4, 5, 6), 2, {4: SMALL, 5: BIG}),
        ((4,), (), ALL, 2, {3: SMALL, 4: BIG}),
        ((5,), (), ALL, 2, {3: SMALL, 4: BIG, 5: POST}),
        ((2, 3), (), ALL, 4, {5: SMALL, 6: BIG, 2: POST, 3: POST}),
        ((3, 4), (), (1, 2, 5, 6), 2, {5: SMALL, 6: BIG}),
        ((4, 5), (), ALL, 2, {3: SMALL, 4: BIG, 5: POST}),
        ((), (2,), (1, 3, 4, 5, 6), 3, {4: SMALL, 5: BIG}),
        ((), (4, 5), (1, 2, 3, 4, 6), 2, {3: SMALL, 4: BIG}),
        ((4,), (5,), (1, 2, 3, 4, 6), 2, {3: SMALL, 4: BIG}),
        ((5,), (4,), ALL, 2, {3: SMALL, 4: BIG, 5: POST}),
        # Two that owe nothing: with others beyond them it is no hand of two, with others between them it is.
        ((2, 3, 4, 5), (), ALL, 6, {1: SMALL, 2: BIG, 3: POST, 4: POST, 5: POST}),
        ((3, 4, 5, 6), (), (1, 2), 2, {2: SMALL, 1: BIG}),
    ],
)
def test_who_owes_a_big_blind_gets_neither_the_button_nor_the_small_one(
    owing, patient, dealt_in, button, posts
) -> None:
    table = table_with(ALL, 1, owing, patient)
    assert posted(table) == posts
    assert (table.hand.seats, table.hand.button) == (dealt_in, button)
    assert {seat.number for seat in table.state.seats.values() if seat.owes_blind} == {*owing, *patient} - {*dealt_in}


def test_a_newcomer_pays_the_big_blind_where_two_play() -> None:
    between, behind = table_with((1, 2, 4), 4, (2,)), table_with((1, 2, 4), 1, (2,))
    assert posted(between) == {1: SMALL, 4: BIG}
    assert posted(between.play_out()) == {1: SMALL, 2: BIG}
    assert posted(behind) == {1: SMALL, 2: BIG}


def test_who_is_in_for_the_small_blind_because_one_alone_owes_nothing_owes_the_big_one_still() -> None:
    table = table_with((1, 4), 1, (4,))
    assert posted(table) == {4: SMALL, 1: BIG}
    assert table.state.seats[4].owes_blind
    assert posted(table.play_out()) == {1: SMALL, 4: BIG}
    assert not table.state.seats[4].owes_blind


def test_of_those_who_wait_for_the_big_blind_only_as_many_are_dealt_in_as_are_needed() -> None:
    # The button comes to seat 4 before seat 1, who owes nothing.
    table = table_with((1, 4, 5), 2, (), (4, 5))
    assert posted(table) == {4: SMALL, 1: BIG}
    assert posted(table.play_out()) == {1: SMALL, 4: BIG}
    # Seat 5 is between the button and the small blind, and then in the big one.
    assert posted(table.play_out()) == {4: SMALL, 1: BIG}
    assert posted(table.play_out()) == {4: SMALL, 5: BIG}
    # The button comes to seat 1 first: seat 4 is in the big blind.
    assert posted(table_with((1, 4, 5), 5, (), (4, 5))) == {1: SMALL, 4: BIG}
    # All wait.
    assert posted(table_with((1, 4, 5), 1, (), (1, 4, 5))) == {4: SMALL, 5: BIG}


def test_nobody_pays_two_big_blinds_running_for_newcomers_who_wait_one_hand_at_most() -> None:
    state = table_with(ALL, 1, ()).state
    choices = [owing for count in range(4) for owing in itertools.combinations(ALL, count)]
    for first_button, owing in itertools.product(ALL, choices):
        state.button, owe, last = first_button, set(owing), 0
        for hand in range(8):
            for number, seat in state.seats.items():
                state.seats[number] = msgspec.structs.replace(seat, owes_blind=number in owe)
            seats, button = opening.lineup(state)
            numbers = [seat.number for seat in seats]
            small, big = opening.clockwise(numbers, button)[:2]
            assert {button, small} & owe == set()
            assert big != last
            owe, last, state.button = {*ALL} - {*numbers}, big, button
            assert owe <= {*owing}
            assert hand == 0 or owe == set()


def test_who_owes_a_big_blind_and_sits_out_in_the_small_ones_place_misses_none_by_it() -> None:
    table = table_with(ALL, 1, (3,))
    table.ask(asks.UpdateSeat, player_at(3), True)
    assert posted(table) == {4: SMALL, 5: BIG}
    assert (table.state.seats[3].owes_blind, table.state.seats[3].owes_dead) == (True, False)
    # Four hands later the big blind has passed it.
    for _ in range(4):
        posted(table.play_out())
    assert (table.hand.button, table.state.seats[3].owes_dead) == (1, True)


def test_one_seat_that_would_not_post_and_no_other_deals_nothing() -> None:
    table = Table("house").sit(1, 2)
    table.next_hand().play_out().work()
    table.ask(asks.UpdateSeat, player_at(1), auto_post=False)
    table.ask(asks.UpdateSeat, player_at(2), True)
    table.time_out()
    table.work()
    assert table.state.playing is None
    assert table.deadline_ms == 0
    table.ask(asks.UpdateSeat, player_at(1), auto_post=True)
    table.ask(asks.UpdateSeat, player_at(2), False)
    assert table.next_hand().hand.seats == (1, 2)
