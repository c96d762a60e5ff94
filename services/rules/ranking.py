"""The value of a five-card hand (RULES 9): one of 7,462 classes, from 1 (7-5-4-3-2) to 7462 (royal flush).

A greater rank beats a smaller one, equal ranks tie. In order: high card, pair, two pair, three of a kind, straight,
flush, full house, four of a kind, straight flush; within each by the ranks in order of multiplicity, then height. The
ace is high, and low only in A 2 3 4 5.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import msgspec

from services.rules.cards import RANKS

CATEGORIES: Final = (
    "high_card",
    "pair",
    "two_pair",
    "three_of_a_kind",
    "straight",
    "flush",
    "full_house",
    "four_of_a_kind",
    "straight_flush",
)
CLASS_COUNT: Final = 7462

_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
_PRIME: Final = tuple(_PRIMES[card >> 2] for card in range(52))
_BIT: Final = tuple(1 << (card >> 2) for card in range(52))
_WHEEL: Final = (12, 3, 2, 1, 0)
_STRAIGHTS: Final = (_WHEEL, *(tuple(range(top, top - 5, -1)) for top in range(4, 13)))

# Each class's ranks in order of multiplicity, by rank; filled with the tables below.
_CLASSES: list[tuple[str, tuple[int, ...]]] = [("", ())]
_distinct = [0] * (1 << 13)
_suited = [0] * (1 << 13)
_paired: dict[int, int] = {}
_first_of: dict[str, int] = {}


def _descending(size: int) -> list[tuple[int, ...]]:
    """All sets of `size` ranks, each highest first, the lowest set first."""
    return sorted(tuple(reversed(ranks)) for ranks in combinations(range(13), size))


def _multiples(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Ranks for a shape like (2, 2, 1), from the lowest hand to the highest; equal multiplicities highest first."""
    choices: list[tuple[int, ...]] = [()]
    for count in sorted(set(shape), reverse=True):
        size = shape.count(count)
        choices = [before + ranks for before in choices for ranks in _descending(size) if not set(before) & set(ranks)]
    return iter(choices)


def _fill() -> None:
    """Number the classes from the lowest up and enter each into the table by which `rank` finds it."""
    unpaired = [ranks for ranks in _descending(5) if ranks not in _STRAIGHTS and ranks != (12, 3, 2, 1, 0)]
    sections: tuple[tuple[str, tuple[int, ...], Sequence[tuple[int, ...]]], ...] = (
        ("high_card", (), unpaired),
        ("pair", (2, 1, 1, 1), list(_multiples((2, 1, 1, 1)))),
        ("two_pair", (2, 2, 1), list(_multiples((2, 2, 1)))),
        ("three_of_a_kind", (3, 1, 1), list(_multiples((3, 1, 1)))),
        ("straight", (), _STRAIGHTS),
        ("flush", (), unpaired),
        ("full_house", (3, 2), list(_multiples((3, 2)))),
        ("four_of_a_kind", (4, 1), list(_multiples((4, 1)))),
        ("straight_flush", (), _STRAIGHTS),
    )
    for category, shape, classes in sections:
        _first_of[category] = len(_CLASSES)
        for ranks in classes:
            number = len(_CLASSES)
            _CLASSES.append((category, ranks))
            if shape:
                product = 1
                for card_rank, count in zip(ranks, shape, strict=True):
                    product *= _PRIMES[card_rank] ** count
                _paired[product] = number
            else:
                table = _suited if category.endswith("flush") else _distinct
                table[sum(1 << card_rank for card_rank in ranks)] = number


_fill()
_STARTS: Final = tuple(_first_of[category] for category in CATEGORIES)


def rank(cards: Sequence[int]) -> int:
    """The class of five distinct cards, 1..7462, greater is better. Raises ValueError for another number of cards."""
    a, b, c, d, e = cards
    ranks = _BIT[a] | _BIT[b] | _BIT[c] | _BIT[d] | _BIT[e]
    number = _distinct[ranks]
    if number:
        return _suited[ranks] if a & 3 == b & 3 == c & 3 == d & 3 == e & 3 else number
    return _paired[_PRIME[a] * _PRIME[b] * _PRIME[c] * _PRIME[d] * _PRIME[e]]


def category(hand_rank: int) -> str:
    """The category of a class, as in "two_pair"."""
    return _CLASSES[hand_rank][0]


def lowest_of_pair(card_rank: int) -> int:
    """The class of the lowest hand with a pair of this rank (0 is the deuce), what a hand to open with must reach."""
    start, end = _first_of["pair"], _first_of["two_pair"]
    return start + bisect_left(range(start, end), card_rank, key=lambda number: _CLASSES[number][1][0])


class HandName(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How a class is called: a key into a language's sentences, and the ranks (0 is the deuce) that fill it."""

    key: str
    ranks: tuple[int, ...]


def describe(hand_rank: int) -> HandName:
    """The name of a class, free of any language."""
    name, ranks = _CLASSES[hand_rank]
    if name == "straight_flush" and ranks[0] == 12 and ranks[1] == 11:
        return HandName("royal_flush", ())
    if name in ("straight", "straight_flush"):
        high = 3 if ranks == _WHEEL else ranks[0]
        return HandName(name, (12 if high == 3 else high - 4, high))
    used = {"two_pair": 2, "full_house": 2}.get(name, 1)
    return HandName(name, ranks[:used])


_ENGLISH_RANKS: Final = (
    *("Deuce", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Jack", "Queen", "King", "Ace"),
)
_ENGLISH: Final = {
    "high_card": "high card {0}",
    "pair": "a pair of {0}s",
    "two_pair": "two pair, {0}s and {1}s",
    "three_of_a_kind": "three of a kind, {0}s",
    "straight": "a straight, {0} to {1}",
    "flush": "a flush, {0} high",
    "full_house": "a full house, {0}s full of {1}s",
    "four_of_a_kind": "four of a kind, {0}s",
    "straight_flush": "a straight flush, {0} to {1}",
    "royal_flush": "a Royal Flush",
}


def name_text(name: HandName) -> str:
    """A hand's name in English, as players say it: "a full house, Kings full of Jacks"."""
    text = _ENGLISH[name.key].format(*(_ENGLISH_RANKS[card_rank] for card_rank in name.ranks))
    return text.replace("Sixs", "Sixes")


def plural_of(card_rank: int) -> str:
    """A rank in the plural, within a sentence: "queens", "sixes"."""
    return f"{_ENGLISH_RANKS[card_rank]}s".replace("xs", "xes").lower()


def hand_name(cards: Sequence[int]) -> str:
    """The name in English of the hand that these five cards make."""
    return name_text(describe(rank(cards)))


def parse_rank(text: str) -> int:
    """The number of a rank's letter: 0 for "2", 12 for "A"."""
    return RANKS.index(text)
