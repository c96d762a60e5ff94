"""The deck's side of a hand: deal, exchange, late card, reshuffle (RULES 3.3, 3.5, 11)."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from services.deck.dealing import (
    DealingRefused,
    Dealt,
    DeckState,
    Reshuffle,
    check,
    deal,
    exchange,
    fold,
    late_card,
    open_deck,
)

FRESH = open_deck(range(52))


def keep(cards: tuple[int, ...], _number: int) -> tuple[int, ...]:
    return cards


def reverse(cards: tuple[int, ...], _number: int) -> tuple[int, ...]:
    return tuple(reversed(cards))


def dealt(*seats: int) -> DeckState:
    return deal(FRESH, seats)[0]


def drain(state: DeckState, seats: tuple[int, ...]) -> DeckState:
    """Each of these seats stands for five new cards."""
    for seat in seats:
        state, _ = exchange(state, seat, state.hands[seat], 5, shuffler=keep)
    return state


def test_deal_goes_one_card_at_a_time_clockwise():
    state, dealing = deal(FRESH, (2, 3, 1))
    assert state.hands == {2: (0, 3, 6, 9, 12), 3: (1, 4, 7, 10, 13), 1: (2, 5, 8, 11, 14)}
    assert dealing.cards[:4] == (Dealt(2, 0, 0, 0), Dealt(3, 1, 0, 1), Dealt(1, 2, 0, 2), Dealt(2, 3, 0, 3))
    check(state)


def test_a_deck_is_the_52():
    for order in (range(51), [*range(51), 50], [0] * 52):
        with pytest.raises(DealingRefused):
            open_deck(list(order))


def test_a_deck_is_dealt_once_and_to_distinct_seats():
    with pytest.raises(DealingRefused, match="already"):
        deal(dealt(1, 2), (1, 2))
    for seats in ((), (1, 1), tuple(range(1, 12))):
        with pytest.raises(DealingRefused):
            deal(FRESH, seats)


def test_exchange_takes_the_next_cards_of_the_stub():
    state, dealing = exchange(dealt(2, 1), 2, (0, 4), 2, shuffler=keep)
    assert dealing.cards == (Dealt(2, 10, 0, 10), Dealt(2, 11, 0, 11))
    assert state.hands[2] == (2, 6, 8, 10, 11)
    assert state.stub == tuple(range(12, 52))
    check(state)


def test_standing_pat_is_an_exchange_of_none_and_only_once():
    state, dealing = exchange(dealt(2, 1), 2, (), 0, shuffler=keep)
    assert dealing.cards == ()
    with pytest.raises(DealingRefused, match="drew already"):
        exchange(state, 2, (0,), 1, shuffler=keep)


@pytest.mark.parametrize(("discards", "draw_now"), [((1,), 1), ((0, 0), 2), ((0, 2), 0), ((0,), 2), ((0,), -1)])
def test_exchange_of_other_cards_or_another_number_is_refused(discards: tuple[int, ...], draw_now: int):
    with pytest.raises(DealingRefused):
        exchange(dealt(2, 1), 2, discards, draw_now, shuffler=keep)


def test_a_seat_without_a_live_hand_gets_nothing():
    with pytest.raises(DealingRefused, match="no live hand"):
        exchange(dealt(2, 1), 3, (), 0, shuffler=keep)
    with pytest.raises(DealingRefused, match="no live hand"):
        exchange(dealt(2, 1), 2, (), 0, shuffler=keep, folded=(2,))
    with pytest.raises(DealingRefused, match="hold no hand"):
        fold(dealt(2, 1), (7,))


def test_stub_first_deals_what_is_left_then_reshuffles_the_others_discards():
    seats = (2, 3, 4, 5, 6, 1)
    state = drain(dealt(*seats), (2, 3, 4, 5))
    assert len(state.stub) == 2
    own = state.hands[6]
    state, dealing = exchange(state, 6, own, 5, shuffler=reverse)
    assert [card.shuffle for card in dealing.cards] == [0, 0, 1, 1, 1]
    assert [card.place for card in dealing.cards] == [50, 51, 0, 1, 2]
    (reshuffle,) = dealing.reshuffles
    assert (reshuffle.number, len(reshuffle.order)) == (1, 20)
    assert not set(own) & set(reshuffle.order)
    check(state)
    # Seat 6's own discards are in the next reshuffle, for others.
    state, dealing = exchange(state, 1, state.hands[1], 5, shuffler=keep)
    assert dealing.reshuffles == ()
    check(state)


def test_mixed_shuffles_the_rest_of_the_stub_in_at_once():
    state = drain(dealt(2, 3, 4, 5, 6, 1), (2, 3, 4, 5))
    left = state.stub
    state, dealing = exchange(state, 6, state.hands[6], 5, shuffler=keep, mixed=True)
    assert [card.shuffle for card in dealing.cards] == [1] * 5
    assert set(left) <= set(dealing.reshuffles[0].order)
    check(state)


def test_folded_hands_join_the_discards_and_live_hands_never():
    seats = (2, 3, 4, 5, 6, 7, 8, 9, 1)
    state = dealt(*seats)
    folded = state.hands[3]
    state = drain(state, (2,))
    state, dealing = exchange(state, 4, state.hands[4], 5, shuffler=keep, folded=(3,))
    (reshuffle,) = dealing.reshuffles
    assert set(reshuffle.order) == set(folded) | set(state.discarded[2])
    for hand in state.hands.values():
        assert not set(hand) & (set(reshuffle.order) - {card.card for card in dealing.cards})
    check(state)
    again = fold(state, (3,))
    assert again is state


def four_drawn(state: DeckState, seat: int) -> DeckState:
    return exchange(state, seat, state.hands[seat][:4], 3, shuffler=keep)[0]


def test_late_card_is_the_next_one():
    state = four_drawn(dealt(2, 1), 2)
    assert state.late == 2
    state, dealing = late_card(state, 2, burn=False, shuffler=keep)
    assert dealing.cards == (Dealt(2, 13, 0, 13),)
    assert (dealing.burned, state.late, len(state.hands[2])) == ((), None, 5)
    check(state)


def test_late_card_after_a_burned_one():
    state = four_drawn(dealt(2, 1), 2)
    state, dealing = late_card(state, 2, burn=True, shuffler=keep)
    assert dealing.burned == (Dealt(0, 13, 0, 13),)
    assert dealing.cards == (Dealt(2, 14, 0, 14),)
    assert state.burned == (13,)
    check(state)


def test_only_one_late_card_is_due():
    state = four_drawn(dealt(2, 1), 2)
    with pytest.raises(DealingRefused, match="due already"):
        four_drawn(state, 1)
    with pytest.raises(DealingRefused, match="no late card"):
        late_card(state, 1, burn=False, shuffler=keep)


@pytest.mark.parametrize("mixed", [False, True])
def test_own_discards_in_the_stub_are_passed_over_and_stay_out(mixed: bool):
    seats = (2, 3, 4, 5, 6, 7, 8, 9, 1)
    state = four_drawn(dealt(*seats), 2)
    own = state.discarded[2]

    def own_first(cards: tuple[int, ...], _number: int) -> tuple[int, ...]:
        return (*(card for card in own if card in cards), *(card for card in cards if card not in own))

    # Four cards are left; seat 3 takes them and one of seat 2's discards, the other three lie on top.
    state, dealing = exchange(state, 3, state.hands[3], 5, shuffler=own_first, mixed=mixed)
    assert set(dealing.reshuffles[0].order) >= set(own)
    state, dealing = late_card(state, 2, burn=False, shuffler=keep, mixed=mixed)
    assert dealing.cards[0].card not in own
    check(state)


def test_burned_card_may_be_the_stub_s_last_and_stays_out_of_the_reshuffle():
    seats = (2, 3, 4, 5, 6, 7, 8, 9, 1)
    state = dealt(*seats)
    state, _ = exchange(state, 2, state.hands[2][:3], 3, shuffler=keep)
    state = four_drawn(state, 3)
    assert len(state.stub) == 1
    (last,) = state.stub
    state, dealing = late_card(state, 3, burn=True, shuffler=keep)
    assert state.burned == (last,)
    assert last not in dealing.reshuffles[0].order
    assert dealing.cards[0].shuffle == 1
    check(state)


def test_mixed_counts_the_burned_card_among_those_due():
    seats = (2, 3, 4, 5, 6, 7, 8, 9, 1)
    state = dealt(*seats)
    state, _ = exchange(state, 2, state.hands[2][:3], 3, shuffler=keep)
    state = four_drawn(state, 3)
    (last,) = state.stub
    state, dealing = late_card(state, 3, burn=True, shuffler=keep, mixed=True)
    assert last in dealing.reshuffles[0].order
    assert [card.shuffle for card in (*dealing.burned, *dealing.cards)] == [1, 1]
    check(state)


def test_a_shuffler_that_changes_the_cards_is_refused():
    state = drain(dealt(2, 3, 4, 5, 6, 1), (2, 3, 4, 5))
    with pytest.raises(DealingRefused, match="reshuffle 1"):
        exchange(state, 6, state.hands[6], 5, shuffler=lambda cards, _: cards[1:])


def test_check_finds_a_card_that_is_in_two_places():
    state = dealt(2, 1)
    with pytest.raises(DealingRefused, match="instead of 52"):
        check(DeckState(order=state.order, cursor=0, hands=state.hands))


@pytest.mark.parametrize("seed", range(60))
def test_nine_seats_draw_as_they_like_and_no_rule_is_broken(seed: int):
    chance = random.Random(seed)
    seats = tuple(chance.sample(range(1, 10), chance.randint(2, 9)))
    mixed = chance.random() < 0.5

    def shuffle(cards: tuple[int, ...], _number: int) -> tuple[int, ...]:
        assert list(cards) == sorted(cards)
        return tuple(chance.sample(cards, len(cards)))

    state, _ = deal(open_deck(chance.sample(range(52), 52)), seats)
    folded = tuple(seat for seat in seats if chance.random() < 0.2)[:-1]
    drawers = [seat for seat in seats if seat not in folded]
    reshuffles: list[Reshuffle] = []
    late = None
    for seat in drawers:
        count = chance.randint(0, 5)
        discards = tuple(chance.sample(state.hands[seat], count))
        short = count == 4 and late is None
        state, dealing = exchange(state, seat, discards, count - short, shuffler=shuffle, folded=folded, mixed=mixed)
        late = seat if short else late
        reshuffles += dealing.reshuffles
        assert not set(dealing.of(seat)) & set(discards)
        check(state)
    if late is not None:
        state, dealing = late_card(state, late, burn=late == drawers[-1], shuffler=shuffle, folded=folded, mixed=mixed)
        reshuffles += dealing.reshuffles
        assert not set(state.hands[late]) & set(state.discarded[late])
        check(state)
    assert [reshuffle.number for reshuffle in reshuffles] == list(range(1, len(reshuffles) + 1))
    assert all(len(hand) == 5 for hand in state.hands.values())


def test_a_second_reshuffle_for_the_late_card_after_own_discards_went_to_others():
    seats = (2, 3, 4, 5, 6, 7, 8, 9, 1)
    state = four_drawn(dealt(*seats), 2)
    for seat in seats[1:]:
        # Each takes five; the first reshuffle holds seat 2's discards, and later ones what others threw since.
        state, _ = exchange(state, seat, state.hands[seat], 5, shuffler=keep)
    while state.stub and not set(state.stub) <= set(state.discarded[2]):
        state = replace(state, cursor=state.cursor + 1, aside=(*state.aside, state.stub[0]))
    state, dealing = late_card(state, 2, burn=False, shuffler=keep)
    assert dealing.reshuffles[-1].number >= 2
    assert dealing.cards[0].card not in state.discarded[2]
    check(state)
