"""The worked examples of the rules (RULES 8), each under its own name. Seats S1.. clockwise, button S1."""

from __future__ import annotations

from services.rules.cards import format_cards, parse_cards
from services.rules.events import HandShown
from services.rules.rulebook import load_rulebook
from tests.unit.rules.play import Table, same

BLINDS = {"small_blind": 5, "big_blind": 10, "chip_unit": 1}


def test_8_1_casadela_fixed_limit_is_capped_at_four_bets():
    table = Table("casadela", same(1, 2, 3), betting="fixed_limit", small_bet=10, big_bet=20, chip_unit=1)
    assert table.state.pot == 15
    table.acts("S1 raise 20", "S2 raise 30", "S3 raise 40")
    options = table.legal()
    assert (options.fold, options.call, options.raise_) == (True, 20, None)
    assert table.refused("S1 raise 50").reason == "RAISE_CAPPED"


def test_8_2_casadela_half_blind_in_whole_chips():
    for big, small in ((1000, 500), (1500, 700), (500, 200), (400, 200), (200, 100)):
        assert load_rulebook("casadela").with_options({"small_bet": big}).small_blind == small


def test_8_3_big_blind_has_the_last_word():
    table = Table("casadela", same(1, 2, 3), betting="no_limit", **BLINDS)
    table.acts("S1 call", "S2 call")
    assert table.to_act == 3
    assert table.legal().check
    assert table.legal().raise_ == (20, 500)
    table.acts("S3 check")
    assert (table.state.stage, table.to_act) == ("draw", 2)


def test_8_4_openers_all_check_is_passed_out_and_doubles_the_pot():
    first = Table("openers", same(1, 2, 3, 4), ante=10).acts("S2 check", "S3 check", "S4 check", "S1 check")
    assert (first.state.outcome, first.state.carry_out, first.state.next_button) == ("passed_out", 40, 1)
    again = Table("openers", first.stacks(), first.state.next_button, carry=first.state.carry_out, ante=10)
    assert again.state.pot == 80


def test_8_5_openers_need_queens_and_only_their_player_is_told():
    kings = Table("openers", same(1, 2, 3, 4), hands={2: "Kc Kd 9c 5d 2h"}, ante=10)
    assert (kings.legal().check, kings.legal().bet) == (True, (10, 490))
    jacks = Table("openers", same(1, 2, 3, 4), hands={2: "Jc Jd 9c 5d 2h"}, ante=10)
    assert (jacks.legal().check, jacks.legal().bet, jacks.legal().fold) == (True, None, False)
    refusal = jacks.refused("S2 bet 20")
    assert (refusal.reason, refusal.private, refusal.facts) == (
        "OPENERS_REQUIRED",
        True,
        {"openers": "QQ", "rank": "queens"},
    )
    assert "queens" in refusal.message()


def test_8_6_one_four_card_draw_a_hand_its_fourth_card_after_everyone():
    hands = {2: "Qs Qh 9c 5d 2h", 3: "Ts Th 6d 4c 2d", 4: "Jc Td Jd 7c 4d", 1: "As Ah Kd Kc 3d"}
    table = Table("openers", same(1, 2, 3, 4), hands=hands, stub="5s 6s 7s 8s 8d 8h 9d 9s", ante=10)
    table.acts("S2 bet 20", "S3 call", "S4 call", "S1 call", "S2 discard Qh 9c 5d 2h")
    assert table.cards(2) == set(parse_cards("Qs 5s 6s 7s"))
    assert table.drawn() == {2: 4}
    assert table.legal().max_discards == 3
    assert table.refused("S3 discard Ts 6d 4c 2d").reason == "FOUR_CARD_DRAW_TAKEN"
    table.acts("S3 discard 6d 4c 2d", "S4 pat", "S1 discard 3d")
    assert table.cards(3) == set(parse_cards("Ts Th 8s 8d 8h"))
    assert table.cards(1) == set(parse_cards("As Ah Kd Kc 9d"))
    assert table.cards(2) == set(parse_cards("Qs 5s 6s 7s 9s"))
    assert table.state.burned == 0


def test_8_6_last_to_draw_asks_four_one_card_is_burned_before_the_fourth():
    hands = {2: "Qs Qh 9c 5d 2h", 3: "Ts Th 6d 4c 2d", 4: "Jc Td Jd 7c 4d", 1: "As Kh 8c 6c 3d"}
    table = Table("openers", same(1, 2, 3, 4), hands=hands, stub="5s 6s 7s 8s 8d 8h 9d 9s", ante=10)
    table.acts("S2 bet 20", "S3 call", "S4 fold", "S1 call", "S2 discard 9c 5d 2h", "S3 pat")
    assert table.legal().max_discards == 4
    table.acts("S1 discard Kh 8c 6c 3d")
    assert table.cards(1) == set(parse_cards("As 8s 8d 8h 9s"))
    assert table.state.burned == 1
    assert table.hand.deck.burned == parse_cards("9d")


def test_8_7_openers_both_check_after_the_draw_is_passed_out():
    table = Table("openers", same(1, 2, 3), hands={2: "Qs Qh 9c 5d 2h"}, ante=10)
    table.acts("S2 bet 20", "S3 call", "S1 fold", "S2 pat", "S3 pat", "S2 check", "S3 check")
    assert (table.state.outcome, table.state.carry_out, table.shown()) == ("passed_out", 70, [])


def test_8_8_american_spread_is_read_literally():
    table = Table("american", same(1, 2, 3, 4), spread_min=1, spread_max=5)
    assert table.refused("S2 check").reason == "CANNOT_CHECK"
    assert table.refused("S2 bet 1").reason == "BELOW_MINIMUM"
    assert table.refused("S2 bet 6").reason == "ABOVE_MAXIMUM"
    assert table.legal().bet == (2, 5)
    table.acts("S2 bet 2", "S3 call", "S4 fold", "S1 fold", "S2 pat", "S3 pat")
    assert table.legal().bet == (2, 4)


def test_8_9_american_odd_chip_stays_for_the_next_pot():
    hands = {2: "As Kh Qd Jc 9d", 3: "Ac Kd Qc Js 9c"}
    stacks = same(1, 2, 3, 4, 5, chips=100)
    table = Table("american", stacks, hands=hands, spread_min=1, spread_max=5)
    table.acts("S2 bet 5", "S3 call", "S4 fold", "S5 fold", "S1 fold", "S2 pat", "S3 pat", "S2 bet 3", "S3 call")
    # Five antes, 2 x 5 and 2 x 3 make 21: 10 each and 1 carried.
    assert table.pots() == [(21, {2: 10, 3: 10})]
    assert table.state.carry_out == 1
    assert Table("american", table.stacks(), 2, carry=1, spread_max=5).state.pot == 6


def test_8_10_american_all_others_fold_the_last_takes_the_antes_unopened():
    table = Table("american", same(1, 2, 3, 4)).acts("S2 fold", "S3 fold", "S4 fold")
    assert (table.state.outcome, table.stacks()[1], table.shown()) == ("uncontested", 503, [])


def test_8_11_clocked_who_misses_the_draw_clock_stands_pat_and_may_not_raise():
    table = Table("clocked", same(1, 2, 3), **BLINDS)
    table.acts("S1 call", "S2 call", "S3 check", "S2 clock", "S3 pat", "S1 pat")
    assert table.drawn() == {1: 0, 2: 0, 3: 0}
    options = table.legal()
    assert (options.check, options.fold, options.bet, options.raise_) == (True, True, None, None)
    assert table.refused("S2 bet 20").reason == "MAY_NOT_RAISE"
    table.acts("S2 check", "S3 bet 20", "S1 call")
    options = table.legal()
    assert (options.fold, options.call, options.raise_) == (True, 20, None)


def test_8_12_nobody_bets_after_the_draw_first_live_seat_left_of_the_button_shows_first():
    hands = {1: "Qs Qh Jd 7c 2d", 2: "Ks Kh Kd 8c 3d", 3: "As Ah Ad 9c 4d"}
    table = Table("clocked", same(1, 2, 3), hands=hands, **BLINDS)
    table.acts("S1 call", "S2 call", "S3 check", "S2 pat", "S3 pat", "S1 pat", "S2 check", "S3 check", "S1 check")
    assert (table.shown(), table.mucked()) == ([2, 3], [1])
    names = [event.name.key for event in table.hand.events if isinstance(event, HandShown)]
    assert names == ["three_of_a_kind", "three_of_a_kind"]


def check_stub_runs_short(seats: int) -> None:
    order = [*range(2, seats + 1), 1]
    table = Table("house", same(*order), seats=seats)
    for seat in [*order[2:], *order[:2]]:
        table.acts(f"S{seat} check" if table.legal().check else f"S{seat} call")
    thrown: dict[int, set[int]] = {}
    for seat in order:
        thrown[seat] = table.cards(seat)
        discard_all(table, seat)
        assert len(table.cards(seat)) == 5
        assert not table.cards(seat) & thrown[seat]
    assert table.state.stage == "second_round"
    assert table.state.reshuffles >= 1


def discard_all(table: Table, seat: int) -> None:
    table.acts(f"S{seat} discard {format_cards(table.cards(seat))}")


def test_8_13_stub_short_six_seats_draw_five_each():
    check_stub_runs_short(6)


def test_8_13_stub_short_nine_seats_draw_five_each():
    check_stub_runs_short(9)


def test_8_13_stub_short_last_two_of_the_stub_then_others_discards():
    table = Table("house", same(1, 2, 3, 4, 5, 6), reshuffles=("",))
    table.acts("S4 call", "S5 call", "S6 call", "S1 call", "S2 call", "S3 check")
    first_discards: set[int] = set()
    for seat in (2, 3, 4, 5):
        first_discards |= table.cards(seat)
        discard_all(table, seat)
    last_two = set(table.hand.deck.stub)
    assert len(last_two) == 2
    discard_all(table, 6)
    assert last_two < table.cards(6)
    assert table.cards(6) - last_two < first_discards


def test_8_14_all_in_below_a_raise_does_not_reopen():
    stacks = {1: 1000, 2: 140, 3: 1000, 4: 1000, 5: 1000}
    table = Table("house", stacks, 3, **BLINDS)
    table.acts("S1 raise 100", "S2 raise 140", "S3 call", "S4 fold", "S5 fold")
    assert (table.legal().call, table.legal().fold, table.legal().raise_) == (40, True, None)
    assert table.refused("S1 raise 300").reason == "BETTING_NOT_REOPENED"


def test_8_14_short_all_ins_that_add_up_to_a_full_raise_reopen():
    # The button is such that S5, S6 post and S1 is first; S3 is all-in for 190 and S4 calls that.
    stacks = {1: 1000, 2: 140, 3: 190, 4: 1000, 5: 1000, 6: 1000}
    table = Table("house", stacks, 4, **BLINDS)
    table.acts("S1 raise 100", "S2 raise 140", "S3 raise 190", "S4 call", "S5 fold", "S6 fold")
    assert table.to_act == 1
    assert (table.legal().call, table.legal().raise_) == (90, (280, 1000))


def test_8_15_side_pots():
    hands = {2: "As Ah Ad 9c 4d", 3: "Ks Kh Kd 8c 3d", 1: "Qs Qh Jd 7c 2d", 4: "Ts 9h 7s 5c 2h"}
    table = Table("house", {1: 200, 2: 30, 3: 80, 4: 200}, hands=hands, **BLINDS)
    table.acts("S4 raise 200", "S1 call", "S2 call", "S3 call", "S2 pat", "S3 pat", "S4 pat", "S1 pat")
    assert table.pots() == [(120, {2: 120}), (150, {3: 150}), (240, {1: 240})]


def test_8_16_uncalled_bet_goes_back_and_makes_no_side_pot():
    hands = {1: "As Ah Ad 9c 4d", 2: "Ks Kh Kd 8c 3d", 3: "Qs Qh Jd 7c 2d"}
    table = Table("house", {1: 50, 2: 300, 3: 300}, hands=hands, **BLINDS)
    table.acts("S1 raise 50", "S2 call", "S3 call", "S2 pat", "S3 pat", "S1 pat", "S2 bet 150", "S3 fold")
    assert table.returned() == {2: 150}
    assert table.pots() == [(150, {1: 150})]
    assert table.shown() == [2, 1]


def test_8_17_short_big_blind_leaves_the_bet_level():
    table = Table(
        "house", {1: 100, 2: 100, 3: 4}, hands={3: "As Ah Ad 9c 4d", 2: "Ks Kh 9d 5c 2d", 1: "Qs Qh 8d 5h 2c"}, **BLINDS
    )
    assert (table.legal().call, table.legal().raise_) == (10, (20, 100))
    table.acts("S1 call", "S2 call", "S2 pat", "S3 pat", "S1 pat", "S2 check", "S1 check")
    assert table.pots()[0] == (12, {3: 12})


def test_8_18_heads_up_big_blind_all_in_by_posting_the_small_blind_is_still_asked():
    table = Table("house", {1: 300, 2: 20}, small_blind=10, big_blind=20)
    assert table.to_act == 1
    assert (table.legal().fold, table.legal().call, table.legal().raise_) == (True, 10, None)
