"""Exact odds of a draw by enumeration of every possible draw from the unseen cards (RULES 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Final

import msgspec

from services.rules.ranking import CATEGORIES, category, rank


class DrawOdds(msgspec.Struct, frozen=True):
    """What a draw can become. `counts` has the categories that occur, from the lowest up; they add up to `total`."""

    hand: tuple[int, ...]
    keep: tuple[int, ...]
    draw: int
    total: int
    counts: dict[str, int]

    def against(self, name: str) -> float:
        """The odds against a category, as n to 1; infinite if it cannot come."""
        return odds_against(self.counts.get(name, 0), self.total)


HANDBOOK: Final[dict[tuple[str, int], dict[str, int]]] = {
    ("pair", 3): {"two_pair": 5, "three_of_a_kind": 8, "full_house": 100, "four_of_a_kind": 360},
    ("pair and ace", 2): {
        "two_pair_with_aces": 5,
        "three_of_a_kind": 12,
        "two_pair_without_aces": 17,
        "full_house": 120,
        "four_of_a_kind": 1080,
    },
    ("two pair", 1): {"full_house": 11},
    ("trips", 2): {"full_house": 16, "four_of_a_kind": 23},
    ("trips and one", 1): {"full_house": 15, "four_of_a_kind": 50},
    ("straight open at both ends", 1): {"straight": 5},
    ("straight open at one place", 1): {"straight": 11},
    ("flush", 1): {"flush": 5},
    ("straight flush open at both ends", 1): {"straight_flush": 23},
    ("straight flush open at one place", 1): {"straight_flush": 50},
}
"""The figures of the old handbook, n to 1 against, by what is kept and how many cards are drawn: roughly rounded."""


def odds_against(count: int, total: int) -> float:
    """n to 1 against an event that `count` of `total` equally likely draws bring; infinite for none."""
    return (total - count) / count if count else float("inf")


def draw_odds(hand: Sequence[int], keep: Sequence[int]) -> DrawOdds:
    """Exact counts for keeping `keep` of the five cards `hand` and drawing the rest.

    Discards do not come back, so the draw is from the 47 cards not in `hand`. Raises ValueError for other input.
    """
    _check(hand, keep)
    unseen = [card for card in range(52) if card not in hand]
    draw = 5 - len(keep)
    kept = tuple(keep)
    by_rank = Counter(rank(kept + drawn) for drawn in combinations(unseen, draw))
    by_category: Counter[str] = Counter()
    for hand_rank, count in by_rank.items():
        by_category[category(hand_rank)] += count
    counts = {name: by_category[name] for name in CATEGORIES if by_category[name]}
    return DrawOdds(tuple(hand), kept, draw, comb(47, draw), counts)


def two_pair_split(hand: Sequence[int], keep: Sequence[int], card_rank: int) -> tuple[int, int]:
    """Of the draws that end in two pair, how many have a pair of `card_rank`, and how many have not."""
    _check(hand, keep)
    unseen = [card for card in range(52) if card not in hand]
    kept = tuple(keep)
    ends = (kept + drawn for drawn in combinations(unseen, 5 - len(kept)))
    with_it = [sum(card >> 2 == card_rank for card in cards) == 2 for cards in ends if _is_two_pair(cards)]
    return sum(with_it), len(with_it) - sum(with_it)


def handbook(hand: Sequence[int], keep: Sequence[int]) -> dict[str, int]:
    """The handbook's figures for this draw, empty where it gives none."""
    _check(hand, keep)
    return HANDBOOK.get((_situation(keep), 5 - len(keep)), {})


def _check(hand: Sequence[int], keep: Sequence[int]) -> None:
    if len(set(hand)) != 5 or len(hand) != 5:
        raise ValueError("a hand is five different cards")
    if len(set(keep)) != len(keep) or not set(keep) <= set(hand):
        raise ValueError("only cards of the hand can be kept, each once")


def _is_two_pair(cards: Sequence[int]) -> bool:
    return category(rank(cards)) == "two_pair"


def _situation(keep: Sequence[int]) -> str:
    """What is kept, in the handbook's words; "" for what it does not treat."""
    ranks = Counter(card >> 2 for card in keep)
    shape = sorted(ranks.values(), reverse=True)
    if shape == [2, 1] and ranks[12] == 1:
        return "pair and ace"
    by_shape = {(2,): "pair", (2, 2): "two pair", (3,): "trips", (3, 1): "trips and one"}
    if shape != [1, 1, 1, 1]:
        return by_shape.get(tuple(shape), "")
    suited = len({card & 3 for card in keep}) == 1
    ways = _straight_ways(set(ranks))
    if ways:
        return ("straight flush" if suited else "straight") + (
            " open at both ends" if ways == 2 else " open at one place"
        )
    return "flush" if suited else ""


def _straight_ways(ranks: set[int]) -> int:
    """How many ranks complete these four to a straight; the ace counts low too."""
    runs = [{12, 0, 1, 2, 3}, *(set(range(low, low + 5)) for low in range(9))]
    return len({min(run - ranks) for run in runs if len(run - ranks) == 1})
