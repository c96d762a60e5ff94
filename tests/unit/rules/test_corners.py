"""The corners that the rules settle (RULES 3 to 6, 11), one test each, amounts worked out by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.rules.commands import Act, Begin, DeliverDeal, DeliverExchange, DeliverLateCard, Discard, Show
from services.rules.events import BetsCollected, ForcedBetPosted, HandShown, PotAwarded
from services.rules.hand import awaits, decide, evolve, legal, start_hand
from services.rules.refusals import CommandInvalid, Refusal, StateBroken
from services.rules.rulebook import load_rulebook
from tests.unit.rules.play import Table, same

ACES, KINGS, QUEENS, TENS = "As Ah Ad 9c 4d", "Ks Kh Kd 8c 3d", "Qs Qh Jd 7c 2d", "Ts 9h 7s 5c 2h"
FIXED = {"betting": "fixed_limit", "small_bet": 10, "big_bet": 20}


def collected(table: Table) -> list[tuple[dict[int, int], dict[int, int]]]:
    return [(e.bets, e.forced_returned) for e in table.hand.events if isinstance(e, BetsCollected)]


# Forced bets.


def test_antes_come_before_blinds_and_a_short_stack_is_all_in_with_them():
    table = Table("house", {1: 100, 2: 4, 3: 7}, ante=5)
    posted = [(e.seat, e.kind, e.amount, e.all_in) for e in table.hand.events if isinstance(e, ForcedBetPosted)]
    assert posted == [
        (2, "ante", 4, True),
        (3, "ante", 5, False),
        (1, "ante", 5, False),
        (3, "big_blind", 2, True),
    ]
    assert table.legal().call == 10


def test_heads_up_button_posts_small_acts_first_before_and_second_after_the_draw():
    table = Table("house", same(1, 2))
    assert table.state.put == (10, 5)
    assert table.to_act == 1
    table.acts("S1 call", "S2 check")
    assert table.to_act == 2
    table.acts("S2 pat", "S1 pat")
    assert table.to_act == 2


def test_newcomer_s_post_is_live_and_lets_it_check():
    table = Table("house", same(1, 2, 3, 4, 5), posts={5: 10})
    assert table.state.pot == 25
    table.acts("S4 call")
    assert (table.to_act, table.legal().check, table.legal().raise_) == (5, True, (20, 500))


def test_dead_post_is_in_the_main_pot_and_no_bet_of_its_seat():
    table = Table("house", same(1, 2, 3, 4), posts={4: 10}, dead_posts={4: 5})
    assert table.state.pot == 30
    assert table.legal().check
    table.acts("S4 fold", "S1 fold", "S2 fold")
    assert table.stacks() == {1: 500, 2: 495, 3: 520, 4: 485}


def test_a_seat_that_is_in_a_blind_posts_what_is_missing_to_its_post():
    table = Table("house", same(1, 2, 3), posts={2: 10, 3: 10})
    assert table.state.put == (10, 10, 0)


def test_no_small_blind_is_posted_where_it_is_nothing():
    table = Table("house", same(1, 2, 3), small_blind=0)
    assert table.state.pot == 10


# Betting.


def test_fixed_limit_all_in_of_half_a_bet_counts_as_a_bet():
    table = Table("house", {1: 15, 2: 500, 3: 500}, **FIXED)
    table.acts("S1 raise 15")
    assert table.state.bets == 2
    assert table.legal().raise_ == (25, 25)
    table.acts("S2 raise 25", "S3 raise 35")
    assert table.refused("S2 raise 45").reason == "RAISE_CAPPED"


def test_fixed_limit_all_in_below_half_a_bet_may_be_completed_but_reopens_nothing():
    stacks = {1: 500, 2: 500, 3: 500, 4: 500, 5: 14}
    table = Table("house", stacks, **FIXED)
    table.acts("S4 call", "S5 raise 14")
    assert (table.state.bets, table.legal().raise_) == (1, (20, 20))
    table.acts("S1 call", "S2 call", "S3 call")
    assert (table.to_act, table.legal().call, table.legal().raise_) == (4, 4, None)
    assert table.refused("S4 raise 20").reason == "BETTING_NOT_REOPENED"


def test_fixed_limit_short_all_ins_add_up_from_the_last_full_level():
    stacks = {1: 500, 2: 500, 3: 500, 4: 500, 5: 13, 6: 16}
    table = Table("house", stacks, **FIXED)
    table.acts("S4 call", "S5 raise 13", "S6 raise 16", "S1 call", "S2 call", "S3 call")
    # 16 is six beyond the full level of 10: more than half a bet, so that S4 may raise.
    assert (table.to_act, table.state.bets, table.legal().raise_) == (4, 2, (26, 26))


def test_fixed_limit_opening_all_in_below_half_is_no_bet_of_the_cap():
    table = Table("openers", {1: 500, 2: 14, 3: 500}, ante=10, betting="fixed_limit", openers="")
    table.acts("S2 bet 4")
    assert (table.state.bets, table.legal().raise_) == (0, (10, 10))


def test_no_limit_raise_over_an_opening_all_in_below_the_least_bet():
    table = Table("house", {1: 500, 2: 16, 3: 500})
    table.acts("S1 call", "S2 call", "S3 check", "S2 pat", "S3 pat", "S1 pat", "S2 bet 6")
    assert table.legal().raise_ == (16, 490)


def test_checked_seat_may_only_call_an_opening_all_in_below_the_least_bet():
    table = Table("house", {1: 16, 2: 500, 3: 500})
    table.acts("S1 call", "S2 call", "S3 check", "S2 pat", "S3 pat", "S1 pat", "S2 check", "S3 check", "S1 bet 6")
    assert (table.legal().call, table.legal().raise_) == (6, None)


def test_least_raise_is_the_largest_full_raise_of_the_round():
    table = Table("house", same(1, 2, 3, 4))
    table.acts("S4 raise 50")
    assert table.legal().raise_ == (90, 500)
    refusal = table.refused("S1 raise 89")
    assert (refusal.reason, refusal.facts) == ("BELOW_MINIMUM", {"tried": 89, "least": 90, "most": 500})
    assert refusal.message() == "89 is too little: the least is 90, the most 500."


def test_raise_at_or_below_the_call_is_below_the_minimum_even_all_in():
    table = Table("house", {1: 10, 2: 500, 3: 500})
    assert (table.legal().call, table.legal().raise_) == (10, None)
    assert table.refused("S1 raise 10").reason == "BELOW_MINIMUM"
    assert table.refused("S1 raise 11").reason == "STACK_EXCEEDED"


def test_pot_limit_raise_reaches_the_pot_after_calling():
    table = Table("house", same(1, 2, 3), betting="pot_limit")
    # 15 in the pot, 10 to call: 10 + (15 + 10).
    assert table.legal().raise_ == (20, 35)
    assert table.refused("S1 raise 36").reason == "ABOVE_MAXIMUM"


def test_pot_limit_counts_a_carried_pot():
    assert Table("house", same(1, 2, 3), betting="pot_limit", carry=40).legal().raise_ == (20, 75)


def test_stack_is_named_before_the_maximum():
    table = Table("house", same(1, 2, 3, chips=30), betting="pot_limit")
    assert table.refused("S1 raise 31").reason == "STACK_EXCEEDED"


def test_spread_limit_raise_adds_the_last_raise_at_least_and_the_most_at_most():
    table = Table("american", same(1, 2, 3, 4), spread_min=1, spread_max=5)
    table.acts("S2 bet 3")
    assert table.legal().raise_ == (6, 8)
    table.acts("S3 raise 8")
    assert table.legal().raise_ == (13, 13)


def test_a_raise_that_nobody_could_call_is_not_offered():
    table = Table("house", {1: 500, 2: 40, 3: 40})
    table.acts("S1 raise 40", "S2 call")
    assert (table.legal().call, table.legal().raise_) == (30, None)
    table = Table("house", {1: 40, 2: 40, 3: 500})
    table.acts("S1 raise 40", "S2 call")
    assert table.refused("S3 raise 100").reason == "NOTHING_TO_RAISE"


def test_nothing_to_raise_where_there_is_no_bet():
    table = Table("openers", same(1, 2, 3), hands={2: ACES}, ante=10)
    assert table.refused("S2 raise 30").reason == "NOTHING_TO_RAISE"
    assert table.refused("S2 call").reason == "NOTHING_TO_CALL"


def test_small_blind_that_covers_a_lone_all_in_big_blind_is_not_asked():
    table = Table("house", {1: 500, 2: 4})
    assert (table.state.stage, table.to_act) == ("draw", 2)
    assert table.returned() == {1: 1}
    assert collected(table) == [({}, {1: 1})]


def test_call_of_a_nominal_level_against_all_ins_below_it_gives_the_rest_back():
    table = Table("house", {1: 500, 2: 3, 3: 4}, hands={1: ACES, 2: KINGS, 3: QUEENS})
    assert table.legal().call == 10
    table.acts("S1 call")
    assert table.returned() == {1: 6}
    assert collected(table) == [({1: 4}, {})]


def test_who_covers_every_live_seat_is_not_asked_whatever_folded_seats_put_in():
    stacks = {1: 500, 2: 500, 3: 4, 4: 500}
    table = Table("house", stacks, hands={2: KINGS, 3: ACES}, posts={4: 10})
    # S4 folds its free 10; S2 has 5 in against the 4 of S3, who is all-in.
    table.acts("S4 fold", "S1 fold")
    assert (table.state.stage, table.to_act, table.returned()) == ("draw", 2, {})
    table.acts("S2 pat", "S3 pat")
    # 3 x 4, and the 5 that only S4 paid, are the main pot; 1 of S2 and 1 of S4 are S2's alone.
    assert table.pots() == [(17, {3: 17}), (2, {2: 2})]


def test_an_ante_above_all_others_comes_back():
    table = Table("house", {1: 500, 2: 3, 3: 3}, ante=5)
    assert table.returned() == {1: 2}
    assert table.state.stage == "draw"
    assert collected(table) == [({}, {1: 2})]


def test_a_walk_returns_the_big_blind_beyond_the_small_one():
    table = Table("house", same(1, 2, 3)).acts("S1 fold", "S2 fold")
    assert table.returned() == {3: 5}
    assert collected(table) == [({}, {3: 5})]
    assert table.pots() == [(10, {3: 10})]
    assert table.stacks() == {1: 500, 2: 495, 3: 505}


def test_fold_is_allowed_where_checking_is_free_unless_check_or_open():
    blinds = Table("house", same(1, 2, 3)).acts("S1 call", "S2 call", "S3 check", "S2 pat", "S3 pat", "S1 pat")
    assert blinds.legal().fold
    openers = Table("openers", same(1, 2, 3), hands={2: ACES}, ante=10)
    openers.acts("S2 bet 10", "S3 call", "S1 call", "S2 pat", "S3 pat", "S1 pat")
    assert openers.refused("S2 fold").reason == "CANNOT_FOLD"


def test_hands_below_openers_may_call_and_raise():
    table = Table("openers", same(1, 2, 3), hands={2: ACES, 3: TENS}, ante=10).acts("S2 bet 20")
    assert (table.legal().call, table.legal().raise_) == (20, (40, 490))


def test_openers_bind_the_first_round_only():
    table = Table("openers", same(1, 2, 3), hands={2: ACES, 3: TENS, 1: "8s 6h 5h 4c 3c"}, ante=10)
    table.acts("S2 bet 20", "S3 call", "S1 call", "S2 discard As Ah Ad", "S3 pat", "S1 pat", "S2 check")
    assert table.legal().bet == (10, 470)


# Order of reasons.


def test_already_drew_comes_first_in_the_draw():
    table = Table("house", same(1, 2, 3)).acts("S1 call", "S2 call", "S3 check", "S2 pat")
    assert table.refused("S2 pat").reason == "ALREADY_DREW"
    assert table.refused("S1 pat").reason == "NOT_YOUR_TURN"
    assert table.refused("S1 check").reason == "NOT_YOUR_TURN"
    assert table.refused("S3 check").reason == "WRONG_STAGE"


def test_discards_are_refused_for_their_number_before_their_cards():
    hands = {2: ACES}
    table = Table("american", same(1, 2, 3), hands=hands).acts("S2 bet 2", "S3 call", "S1 call")
    assert table.refused("S2 discard 2c 2c 2c 2c").reason == "TOO_MANY_DISCARDS"
    held = table.refused("S2 discard 2c")
    assert (held.reason, held.private, held.facts) == ("CARD_NOT_HELD", True, {"cards": "2c"})
    assert table.refused("S2 discard As As").reason == "DUPLICATE_CARD"


def test_turn_comes_before_everything_in_a_round():
    table = Table("house", same(1, 2, 3))
    assert table.refused("S2 raise 9999").reason == "NOT_YOUR_TURN"
    assert table.refused("S1 pat").reason == "WRONG_STAGE"
    assert table.refused("S1 bet 9999").reason == "CANNOT_BET"


# Clocks.


def test_clock_checks_if_free_else_folds():
    table = Table("house", same(1, 2, 3)).acts("S1 clock", "S2 call", "S3 clock")
    assert table.state.folded_seats() == (1,)
    assert table.state.stage == "draw"


def test_clock_folds_where_there_is_no_check():
    table = Table("american", same(1, 2, 3)).acts("S2 clock")
    assert table.state.folded_seats() == (2,)


def test_missed_draw_clock_bars_only_where_the_rulebook_says_so():
    table = Table("house", same(1, 2)).acts("S1 call", "S2 check", "S2 clock", "S1 pat")
    assert table.legal().bet == (10, 490)


# The draw.


def test_all_in_seats_draw_too():
    table = Table("house", same(1, 2, chips=50)).acts("S1 raise 50", "S2 call")
    assert (table.state.stage, table.to_act) == ("draw", 2)
    table.acts("S2 pat", "S1 pat")
    assert table.state.outcome == "showdown"


def test_own_discards_in_a_new_stub_are_passed_over_at_the_late_card():
    options = {"ante": 10, "seats": 9, "openers": ""}
    order = [2, 3, 4, 5, 6, 7, 8, 9, 1]
    table = Table("openers", same(*order), **options)
    table.acts("S2 bet 10", *(f"S{seat} call" for seat in order[1:]))
    thrown = sorted(table.cards(2))[:4]
    texts = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    table.acts("S2 discard " + " ".join(texts[card] for card in thrown))
    # Seven cards are in the stub; S2 took three. S3 and S4 take the rest and force a reshuffle with S2's discards.
    for seat in order[1:3]:
        cards = sorted(table.cards(seat))[:3]
        table.scripted = [tuple(thrown)]
        table.acts(f"S{seat} discard " + " ".join(texts[card] for card in cards))
    for seat in order[3:]:
        table.acts(f"S{seat} pat")
    assert table.state.stage == "second_round"
    assert len(table.cards(2)) == 5
    assert not table.cards(2) & set(thrown)


# Showdown and payout.


def showdown(table: Table) -> Table:
    return table.acts("S1 call", "S2 call", "S3 check", "S2 pat", "S3 pat", "S1 pat")


def test_last_to_bet_shows_first_then_clockwise():
    table = showdown(Table("house", same(1, 2, 3), hands={1: ACES, 2: KINGS, 3: QUEENS}))
    table.acts("S2 check", "S3 bet 20", "S1 call", "S2 call")
    assert (table.shown(), table.mucked()) == ([3, 1], [2])


def test_a_seat_that_shows_its_losing_hands_does():
    table = Table("house", same(1, 2, 3), hands={1: ACES, 2: KINGS, 3: QUEENS}, auto_muck={2: False})
    showdown(table).acts("S2 check", "S3 bet 20", "S1 call", "S2 call")
    assert (table.shown(), table.mucked()) == ([3, 1, 2], [])


def test_show_all_shows_all():
    table = Table("house", same(1, 2, 3), hands={1: ACES, 2: KINGS, 3: QUEENS}, losers="show_all")
    showdown(table).acts("S2 check", "S3 bet 20", "S1 call", "S2 call")
    assert table.shown() == [3, 1, 2]


def test_side_pot_shows_before_the_main_pot_and_is_paid_first():
    table = Table("house", {1: 200, 2: 30, 3: 200}, hands={1: KINGS, 2: ACES, 3: QUEENS})
    table.acts("S1 raise 60", "S2 call", "S3 call", "S2 pat", "S3 pat", "S1 pat", "S3 check", "S1 check")
    assert table.shown() == [3, 1, 2]
    assert [event.index for event in table.hand.events if isinstance(event, PotAwarded)] == [1, 0]
    assert table.pots() == [(90, {2: 90}), (60, {1: 60})]


def test_owner_of_an_uncontested_side_pot_may_muck():
    stacks = {1: 300, 2: 30, 3: 300}
    table = Table("house", stacks, hands={1: QUEENS, 2: ACES, 3: KINGS})
    table.acts("S1 raise 60", "S2 call", "S3 call", "S2 pat", "S3 pat", "S1 pat", "S3 check", "S1 bet 50", "S3 fold")
    assert table.returned() == {1: 50}
    # The 60 of the side pot are S1's alone; S1 bet last and shows first.
    assert table.pots() == [(90, {2: 90}), (60, {1: 60})]
    assert (table.shown(), table.mucked()) == ([1, 2], [])


def test_odd_chip_goes_to_first_winner_left_of_button():
    hands = {2: "As Kh Qd Jc 9d", 3: "Ac Kd Qc Js 9c", 1: TENS, 4: "8s 6h 5h 4c 3c"}
    table = Table("house", same(1, 2, 3, 4), hands=hands, small_blind=5, ante=1)
    table.acts("S4 call", "S1 fold", "S2 call", "S3 check", "S2 pat", "S3 pat", "S4 pat")
    table.acts("S2 check", "S3 bet 10", "S4 fold", "S2 call")
    # Four antes, 3 x 10 and 2 x 10 make 54; S2 and S3 hold the same hand.
    assert table.pots() == [(54, {2: 27, 3: 27})]
    odd = Table("house", same(1, 2, 3, 4), hands=hands, carry=1)
    odd.acts("S4 fold", "S1 fold", "S2 call", "S3 check", "S2 pat", "S3 pat", "S2 check", "S3 check")
    assert odd.pots() == [(21, {2: 11, 3: 10})]


def test_rake_main_pot_first_up_to_the_cap_rounded_down_per_pot():
    hands = {1: KINGS, 2: ACES, 3: QUEENS}
    for cap, rake, pots in ((0, 7, [(90, {2: 86}), (60, {1: 57})]), (5, 5, [(90, {2: 86}), (60, {1: 59})])):
        table = Table("house", {1: 60, 2: 30, 3: 60}, hands=hands, rake_basis_points=500, rake_cap=cap)
        table.acts("S1 raise 60", "S2 call", "S3 call", "S2 pat", "S3 pat", "S1 pat")
        assert (table.state.rake, table.pots()) == (rake, pots)


def test_carried_pot_is_raked_when_it_is_won_and_not_when_passed_out():
    table = Table("openers", same(1, 2), ante=10, rake_basis_points=1000, carry=80, hands={2: ACES})
    table.acts("S2 bet 10", "S1 call", "S2 pat", "S1 pat", "S2 check", "S1 check")
    assert (table.state.outcome, table.state.rake, table.state.carry_out) == ("passed_out", 0, 120)
    won = Table("openers", same(1, 2), ante=10, rake_basis_points=1000, carry=120, hands={2: ACES})
    won.acts("S2 bet 10", "S1 call", "S2 pat", "S1 pat", "S2 bet 10", "S1 fold")
    assert (won.state.rake, won.pots()) == (16, [(160, {2: 144})])


def test_a_checked_round_with_an_all_in_seat_leads_on():
    table = Table("openers", {1: 100, 2: 100, 3: 10}, ante=10, hands={3: ACES, 2: KINGS, 1: QUEENS})
    table.acts("S2 check", "S1 check")
    assert table.state.stage == "draw"
    table.acts("S2 pat", "S3 pat", "S1 pat", "S2 check", "S1 check")
    assert (table.state.outcome, table.pots()) == ("showdown", [(30, {3: 30})])


def test_next_button_skips_a_seat_without_chips():
    table = Table("house", {1: 500, 2: 50, 3: 500}, hands={1: ACES, 2: KINGS, 3: QUEENS})
    table.acts("S1 raise 50", "S2 call", "S3 fold", "S2 pat", "S1 pat")
    assert table.stacks()[2] == 0
    assert table.state.next_button == 3


def test_button_moves_after_a_pass_out_where_the_rulebook_says_so():
    table = Table("openers", same(1, 2, 3), button_after_pass_out="moves").acts("S2 check", "S3 check", "S1 check")
    assert table.state.next_button == 2


def test_winner_and_mucker_may_show_after_the_hand_and_nobody_else():
    table = Table("house", same(1, 2, 3), hands={1: ACES, 2: KINGS, 3: QUEENS})
    showdown(table).acts("S2 check", "S3 bet 20", "S1 call", "S2 call")
    (event,) = decide(table.state, Show(2))
    assert isinstance(event, HandShown)
    assert (event.seat, event.voluntary, event.name.key) == (2, True, "three_of_a_kind")
    again = evolve(table.state, event)
    for state, seat in ((again, 2), (table.state, 1)):
        with pytest.raises(Refusal, match="WRONG_STAGE"):
            decide(state, Show(seat))
    walk = Table("house", same(1, 2, 3)).acts("S1 fold", "S2 fold")
    assert decide(walk.state, Show(3))
    with pytest.raises(Refusal, match="WRONG_STAGE"):
        decide(walk.state, Show(1))


# What no correct caller sends.


def test_commands_out_of_place_are_invalid():
    state = start_hand(load_rulebook("house"), same(1, 2, 3), 1)
    with pytest.raises(CommandInvalid):
        decide(state, DeliverDeal({}))
    for event in decide(state, Begin()):
        state = evolve(state, event)
    hands = {2: (0, 1, 2, 3, 4), 3: (5, 6, 7, 8, 9), 1: (10, 11, 12, 13, 14)}
    for wrong in (
        {2: hands[2]},
        {**hands, 1: (0, 1, 2, 3, 4)},
        {**hands, 1: (10, 11)},
        {**hands, 1: (60, 61, 62, 63, 64)},
    ):
        with pytest.raises(CommandInvalid):
            decide(state, DeliverDeal(wrong))
    with pytest.raises(CommandInvalid, match="'shove' is no action"):
        decide(Table("house", same(1, 2, 3)).state, Act(1, "shove"))  # type: ignore[arg-type]
    for command in (Begin(), DeliverExchange(1, ()), DeliverLateCard(1, 3), Act(9, "fold"), Discard(9, ()), Show(9)):
        with pytest.raises(CommandInvalid):
            decide(state, command)
    assert legal(state, None) == legal(state, 1)
    assert awaits(state).seats == (2, 3, 1)  # type: ignore[union-attr]


def test_a_late_card_is_taken_for_its_seat_and_with_its_burn_only():
    table = Table("openers", same(1, 2, 3), ante=10, openers="").acts("S2 bet 10", "S3 call", "S1 call")
    before = table.state
    cards = before.hands[0]
    for event in decide(before, Discard(2, cards[:4])):
        before = evolve(before, event)
    for event in decide(before, DeliverExchange(2, (40, 41, 42))):
        before = evolve(before, event)
    with pytest.raises(CommandInvalid, match="no late card is due"):
        decide(before, DeliverLateCard(2, 43))
    for seat in (3, 1):
        for event in decide(before, Discard(seat)):
            before = evolve(before, event)
    for wrong in (DeliverLateCard(3, 43), DeliverLateCard(2, 43, burned=True), DeliverLateCard(2, cards[0])):
        with pytest.raises(CommandInvalid):
            decide(before, wrong)
    drawn, *_ = decide(before, DeliverLateCard(2, 43))
    assert (type(drawn).__name__, drawn.count, drawn.late) == ("CardsDrawn", 1, True)  # type: ignore[union-attr]


def test_an_event_whose_money_contradicts_the_state_is_not_taken():
    table = Table("house", same(1, 2, 3)).acts("S1 call", "S2 call")
    *_, collected_bets, _ = decide(table.state, Act(3, "check"))
    assert isinstance(collected_bets, BetsCollected)
    with pytest.raises(StateBroken, match="the pot is 30"):
        evolve(table.state, replace(collected_bets, pot=31))
    walk = Table("house", same(1, 2, 3)).acts("S1 fold", "S2 fold")
    ended = walk.hand.events[-1]
    with pytest.raises(StateBroken, match="10 of a pot of 10"):
        evolve(walk.state, replace(ended, stacks={1: 500, 2: 495, 3: 506}))


@pytest.mark.parametrize(
    ("stacks", "carry", "posts"),
    [
        ({1: 5}, 0, {}),
        ({1: 0, 2: 5}, 0, {}),
        ({1: 5, 2: 5}, -1, {}),
        ({1: 2**63 - 1, 2: 5}, 0, {}),
        ({1: 5, 2: 5}, 0, {3: 5}),
    ],
)
def test_a_hand_that_could_not_be_played_is_not_started(stacks: dict[int, int], carry: int, posts: dict[int, int]):
    with pytest.raises(ValueError, match="cannot be played"):
        start_hand(load_rulebook("house"), stacks, 1, carry, posts)


def test_button_s_seat_need_not_be_dealt_in():
    state = start_hand(load_rulebook("house"), same(2, 5, 8), 6)
    assert state.seats == (8, 2, 5)
