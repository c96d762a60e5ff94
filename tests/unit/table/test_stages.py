"""Leaving, sitting out, pausing, closing and voiding at every stage of a hand, under every rulebook.

The invariants of `scripted.Table.check` hold after each step of each of these.
"""

from __future__ import annotations

import pytest

from services.runtime.errors import Fault
from services.table import asks
from tests.unit.table.scripted import OPERATOR, Table, player_at

RULEBOOKS = ("house", "clocked", "casadela", "openers", "american")
STAGES = ("cut", "first_round", "draw", "second_round")
SEATS = (1, 2, 4)


# With `openers`, somebody holds a pair of queens or better in the hand of this seed.
SEED = 1


def at(rulebook: str, stage: str) -> Table:
    """A table of three in its first hand, at the first turn of a stage."""
    table = Table(rulebook, SEED)
    table.sit(*SEATS).next_hand()
    if stage != "cut":
        table.play_to(stage)
    return table


STAGED = [
    (rulebook, stage)
    for rulebook in RULEBOOKS
    for stage in STAGES
    if stage != "cut" or Table(rulebook).state.rulebook.cut
]
everywhere = pytest.mark.parametrize(("rulebook", "stage"), STAGED)


def next_hands(table: Table, count: int = 2) -> None:
    """The table goes on as if nothing had been."""
    for _ in range(count):
        table.next_hand().play_out()
    table.work()


@everywhere
def test_who_leaves_in_turn_gives_up_at_once_and_is_cashed_out_after_the_hand(rulebook, stage) -> None:
    table = at(rulebook, stage)
    leaver = table.to_act
    table.ask(asks.Leave, player_at(leaver))
    assert table.to_act != leaver
    assert leaver in table.state.seats, "the stack is in the hand"
    table.play_out().work()
    assert leaver not in table.state.seats
    assert len(table.stacks) == 2
    next_hands(table)


@everywhere
def test_who_leaves_out_of_turn_gives_up_when_the_turn_comes(rulebook, stage) -> None:
    table = at(rulebook, stage)
    leaver = next(seat for seat in SEATS if seat != table.to_act)
    turn = table.hand.turn
    table.ask(asks.Leave, player_at(leaver))
    assert table.hand.turn == turn, "nobody else is disturbed"
    table.play_out().work()
    assert leaver not in table.state.seats
    next_hands(table)


@everywhere
def test_all_who_leave_are_paid_and_the_table_stands_empty(rulebook, stage) -> None:
    table = at(rulebook, stage)
    for seat in SEATS:
        table.ask(asks.Leave, player_at(seat))
    table.work()
    assert table.state.playing is None
    assert table.state.seats == {}
    assert table.stacks == {}
    while table.carry:  # nobody comes back for it
        table.time_out()
        table.work()
    assert table.taken_home + table.rake == table.bought


@everywhere
def test_who_sits_out_plays_this_hand_and_not_the_next(rulebook, stage) -> None:
    table = at(rulebook, stage)
    table.ask(asks.UpdateSeat, player_at(SEATS[1]), True)
    assert SEATS[1] in table.hand.seats
    table.play_out().next_hand()
    assert table.hand.seats == (SEATS[0], SEATS[2])
    table.ask(asks.UpdateSeat, player_at(SEATS[1]), False)
    table.play_out().next_hand()
    if table.state.seats[SEATS[1]].owes_blind:
        # It has missed the big blind, and waits while it is between the button and the next one.
        assert (table.hand.seats, table.hand.button) == ((SEATS[0], SEATS[2]), SEATS[0])
        table.play_out().next_hand()
    assert table.hand.seats == SEATS


@everywhere
def test_a_pause_keeps_what_the_clock_had_left(rulebook, stage) -> None:
    table = at(rulebook, stage)
    seat, turn, left_ms = table.to_act, table.hand.turn, 1_234
    table.now_ms = table.deadline_ms - left_ms
    table.ask(asks.Pause, OPERATOR, "a break")
    assert table.deadline_ms == 0
    with pytest.raises(Fault) as caught:
        table.act()
    assert caught.value.reason == "TABLE_PAUSED"
    table.now_ms += 3_600_000
    table.ask(asks.Resume, OPERATOR)
    assert (table.to_act, table.hand.turn, table.deadline_ms - table.now_ms) == (seat, turn, left_ms)
    table.act()
    next_hands(table)


@everywhere
def test_a_pause_while_the_house_is_at_work_lets_it_finish_and_gives_nobody_a_turn(rulebook, stage) -> None:
    table = at(rulebook, stage)
    while not table.state.effects and table.state.playing is not None:
        table.act()
    table.ask(asks.Pause, OPERATOR, "a break")
    table.work()
    assert table.to_act == 0
    assert table.deadline_ms == 0
    table.revive()
    assert table.to_act == 0, "a sweep does not wake a paused table"
    table.ask(asks.Resume, OPERATOR)
    next_hands(table)


@everywhere
def test_who_leaves_a_paused_table_is_paid_when_it_goes_on(rulebook, stage) -> None:
    table = at(rulebook, stage)
    table.ask(asks.Pause, OPERATOR, "a break")
    for seat in SEATS[:2]:
        table.ask(asks.Leave, player_at(seat))
    table.work()
    table.ask(asks.Resume, OPERATOR)
    table.play_out().work()
    assert set(table.state.seats) == {SEATS[2]}


@everywhere
def test_a_closed_table_finishes_its_hand_and_cashes_everybody_out(rulebook, stage) -> None:
    table = at(rulebook, stage)
    table.ask(asks.Close, OPERATOR, "the end")
    assert table.state.playing is not None
    table.play_out().work()
    assert (table.state.mode, table.state.seats, table.stacks, table.carry) == ("closed", {}, {}, 0)
    assert table.is_over
    assert table.histories == [1]
    assert table.taken_home + table.rake == table.bought
    with pytest.raises(Fault) as caught:
        table.ask(asks.SitDown, player_at(5), 5, table.state.rulebook.max_buy_in_minor, 0)
    assert caught.value.reason == "TABLE_CLOSED"


@everywhere
def test_closing_a_paused_table_in_a_hand_lets_the_hand_go_on(rulebook, stage) -> None:
    table = at(rulebook, stage)
    table.ask(asks.Pause, OPERATOR, "a break")
    table.ask(asks.Close, OPERATOR, "the end")
    table.play_out().work()
    assert table.state.mode == "closed"


@everywhere
def test_a_void_hand_gives_every_chip_back_and_the_next_is_dealt(rulebook, stage) -> None:
    table = at(rulebook, stage)
    stacks = {seat: table.state.seats[seat].stack for seat in SEATS}
    table.ask(asks.Void, OPERATOR, 1, "a test")
    with pytest.raises(Fault) as caught:
        table.ask(asks.Void, OPERATOR, 1, "again")
    assert caught.value.reason == "HAND_CLOSED"
    table.work()
    assert {seat: table.state.seats[seat].stack for seat in SEATS} == stacks
    assert table.taken_home == table.rake == table.carry == 0
    next_hands(table)
    assert table.histories[0] == 1, "a void hand has a history too"


@everywhere
def test_a_void_hand_lets_leavers_go(rulebook, stage) -> None:
    table = at(rulebook, stage)
    table.ask(asks.Leave, player_at(SEATS[0]))
    table.ask(asks.Void, OPERATOR, 1, "a test")
    table.work()
    assert set(table.state.seats) == set(SEATS[1:])


@everywhere
def test_clocks_alone_bring_a_hand_to_its_end_and_sit_everybody_out(rulebook, stage) -> None:
    table = at(rulebook, stage)
    for _ in range(200):
        table.work()
        if table.state.clock is None or table.state.clock.kind == "idle_carry":
            break
        table.time_out()
    assert table.state.playing is None
    assert all(seat.sitting_out or seat.missed_clocks < 2 for seat in table.state.seats.values())
    assert len([seat for seat in table.state.seats.values() if not seat.sitting_out]) < 2
