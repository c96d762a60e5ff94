"""Pots, shares and rake as a verifier works them out; every figure is worked out by hand."""

from __future__ import annotations

from services.deck.verification.pots import PotDue, pots_due, rakes_due, shares_due, showing_order, uncalled


def test_pots_are_the_layers_of_what_the_live_seats_paid() -> None:
    # 2 is all in for 10, 3 for 25, 4 and 5 paid 40; 6 folded after 15, 7 after 5. The carry is 3.
    paid = {2: 10, 3: 25, 4: 40, 5: 40, 6: 15, 7: 5}
    assert pots_due(paid, [2, 3, 4, 5], 3) == [
        PotDue(58, (2, 3, 4, 5), 6),
        PotDue(50, (3, 4, 5), 4),
        PotDue(30, (4, 5), 2),
    ]


def test_chips_above_all_live_seats_fall_into_the_last_pot_that_two_can_win() -> None:
    # 4 bet 50 and folded to nobody's call: 2 and 3 are all in for 10 and 20.
    assert pots_due({2: 10, 3: 20, 4: 50}, [2, 3], 0) == [PotDue(60, (2, 3), 3), PotDue(20, (3,), 2)]
    assert pots_due({2: 20, 3: 20, 4: 50}, [2, 3], 0) == [PotDue(90, (2, 3), 3)]
    assert pots_due({2: 20, 3: 20, 4: 50}, [3], 0) == [PotDue(90, (3,), 3)]


def test_what_nobody_called_goes_back_to_a_live_seat_only() -> None:
    assert uncalled({1: 10, 2: 30, 3: 25}, [1, 2]) == (2, 5)
    assert uncalled({1: 10, 2: 30, 3: 25}, [1, 3]) == (0, 0)
    assert uncalled({1: 30, 2: 30, 3: 25}, [1, 2]) == (0, 0)


def test_seats_of_the_last_side_pot_show_first_beginning_with_the_aggressor() -> None:
    pots = [PotDue(40, (2, 3, 5), 4), PotDue(20, (3, 5), 2), PotDue(5, (5,), 2)]
    assert showing_order(pots, [2, 3, 4, 5], 2) == [3, 5, 2]
    assert showing_order(pots, [2, 3, 4, 5], 5) == [5, 3, 2]


def test_rake_is_a_part_of_shared_pots_rounded_down_until_the_cap() -> None:
    pots = [PotDue(199, (1, 2), 2), PotDue(100, (1, 2), 2), PotDue(50, (1,), 1)]
    assert rakes_due(pots, 500, 0) == [9, 5, 0]
    assert rakes_due(pots, 500, 12) == [9, 3, 0]
    assert rakes_due(pots, 500, 4) == [4, 0, 0]


def test_odd_chips_go_clockwise_or_stay_for_the_next_pot() -> None:
    assert shares_due(20, (4, 1, 2), False) == ({4: 7, 1: 7, 2: 6}, 0)
    assert shares_due(20, (4, 1, 2), True) == ({4: 6, 1: 6, 2: 6}, 2)
