"""Ranking: all 2,598,960 hands, the order against three other evaluators, and the names of hands."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import eval7
import phevaluator
import pytest
import treys

from services.rules.cards import CARD_TEXTS, parse_cards
from services.rules.ranking import (
    CATEGORIES,
    CLASS_COUNT,
    category,
    describe,
    hand_name,
    lowest_of_pair,
    name_text,
    parse_rank,
    rank,
)

HANDS_OF = {
    "high_card": 1_302_540,
    "pair": 1_098_240,
    "two_pair": 123_552,
    "three_of_a_kind": 54_912,
    "straight": 10_200,
    "flush": 5_108,
    "full_house": 3_744,
    "four_of_a_kind": 624,
    "straight_flush": 40,
}
CLASSES_OF = (1277, 2860, 858, 858, 10, 1277, 156, 156, 10)
_EVAL7 = tuple(eval7.Card(text) for text in CARD_TEXTS)
_TREYS = tuple(treys.Card.new(text) for text in CARD_TEXTS)
_treys = treys.Evaluator()


def others(hand: tuple[int, ...]) -> tuple[int, int, int]:
    """The three other evaluators' values, turned so that greater is better."""
    seven = eval7.evaluate([_EVAL7[card] for card in hand])
    three = _treys.evaluate([], [_TREYS[card] for card in hand])
    perfect = phevaluator.evaluate_cards(*(CARD_TEXTS[card] for card in hand))
    return seven, 7463 - three, 7463 - perfect


def one_hand_of_each_class() -> dict[int, tuple[int, ...]]:
    """The first hand of each class among all, in suits that make every class."""
    found: dict[int, tuple[int, ...]] = {}
    for hand in combinations(range(52), 5):
        found.setdefault(rank(hand), hand)
        if len(found) == CLASS_COUNT:
            break
    return found


def test_every_hand_once_counts_per_category_and_classes():
    by_rank = Counter(rank(hand) for hand in combinations(range(52), 5))
    assert sorted(by_rank) == list(range(1, CLASS_COUNT + 1))
    by_category: Counter[str] = Counter()
    for number, count in by_rank.items():
        by_category[category(number)] += count
    assert by_category == HANDS_OF
    classes = Counter(category(number) for number in by_rank)
    assert tuple(classes[name] for name in CATEGORIES) == CLASSES_OF


def test_order_of_all_classes_agrees_with_three_other_evaluators():
    found = one_hand_of_each_class()
    in_order = [others(found[number]) for number in range(1, CLASS_COUNT + 1)]
    for index in range(3):
        column = [values[index] for values in in_order]
        assert column == sorted(set(column))
    # Two of them number the classes as we do.
    assert [values[1:] for values in in_order] == [(number, number) for number in range(1, CLASS_COUNT + 1)]


def test_sampled_hands_agree_with_three_other_evaluators():
    chance = random.Random(5)
    for _ in range(5000):
        first, second = (tuple(chance.sample(range(52), 5)) for _ in range(2))
        ours = (rank(first) > rank(second)) - (rank(first) < rank(second))
        for one, two in zip(others(first), others(second), strict=True):
            assert (one > two) - (one < two) == ours
        assert rank(first) == rank(tuple(chance.sample(first, 5)))


@pytest.mark.timeout(300)
def test_every_hand_agrees_with_treys():
    for hand in combinations(range(52), 5):
        assert rank(hand) == 7463 - _treys.evaluate([], [_TREYS[card] for card in hand])


@pytest.mark.parametrize(
    ("cards", "name"),
    [
        ("As Kd Qd 3h 2c", "high card Ace"),
        ("Ks Kd 4d 3h 2c", "a pair of Kings"),
        ("6s 6d 4d 3h 2c", "a pair of Sixes"),
        ("Js Jd 6d 6h 2c", "two pair, Jacks and Sixes"),
        ("As Ad Ah 6h 2c", "three of a kind, Aces"),
        ("2s 2d 2h 6h 3c", "three of a kind, Deuces"),
        ("9s Td Jd Qh Kc", "a straight, Nine to King"),
        ("As 2d 3d 4h 5c", "a straight, Ace to Five"),
        ("As Kd Qd Jh Tc", "a straight, Ten to Ace"),
        ("Js 2s 3s 4s 6s", "a flush, Jack high"),
        ("Ks Kd Kh Jh Jc", "a full house, Kings full of Jacks"),
        ("9s 9d 9h 9c Jc", "four of a kind, Nines"),
        ("5s 6s 7s 8s 9s", "a straight flush, Five to Nine"),
        ("As 2s 3s 4s 5s", "a straight flush, Ace to Five"),
        ("As Ks Qs Js Ts", "a Royal Flush"),
    ],
)
def test_names_are_as_players_say_them(cards: str, name: str):
    assert hand_name(parse_cards(cards)) == name


def test_every_class_has_a_name():
    names = {name_text(describe(number)) for number in range(1, CLASS_COUNT + 1)}
    assert len(names) == 8 + 13 + 78 + 13 + 10 + 8 + 156 + 13 + 10


def test_ace_is_low_only_in_the_wheel():
    wheel, six_high = rank(parse_cards("As 2d 3d 4h 5c")), rank(parse_cards("2s 3d 4d 5h 6c"))
    assert category(wheel) == "straight"
    assert wheel < six_high
    assert category(rank(parse_cards("Qs Kd Ad 2h 3c"))) == "high_card"


def test_suits_never_count():
    assert rank(parse_cards("As Kd Qd 3h 2c")) == rank(parse_cards("Ac Kh Qh 3d 2s"))


@pytest.mark.parametrize("text", list("23456789TJQKA"))
def test_a_hand_to_open_with_begins_at_the_lowest_pair_of_its_rank(text: str):
    lowest = lowest_of_pair(parse_rank(text))
    kickers = [card for card in "23456" if card != text][:3]
    assert rank(parse_cards(f"{text}s {text}d {kickers[0]}h {kickers[1]}h {kickers[2]}c")) == lowest
    assert describe(lowest).ranks[0] == parse_rank(text)


def test_another_number_of_cards_is_an_error():
    with pytest.raises(ValueError, match="unpack"):
        rank((1, 2, 3, 4))
