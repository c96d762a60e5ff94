"""Are decks, reshuffles and draws what chance would give? Judged over many, with shuffles that are known to be wrong.

A test here fails for one sound run in a million. The seed is printed; the quick runs have a fixed one.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from services.deck import dealing, shuffling
from services.deck.cards import number_of
from services.rules.ranking import category, rank
from tests.property.deck.statistics import Verdict, draw_verdict, judge

P_LEAST = 1e-6
QUICK_SEED = hashlib.sha256(b"five cards").digest()
RESHUFFLED_CARDS = tuple(range(3, 47, 2))
CONTEXT = shuffling.context_of("tables/statistics", 1, b"", ())
ODDS = json.loads((Path(__file__).parents[2] / "golden" / "odds.json").read_text())["cases"]

QUICK = pytest.param(50_000, id="50000")
LONG_MARKS = (pytest.mark.long, pytest.mark.timeout(3_000))
LONG = pytest.param(1_000_000, id="1000000", marks=LONG_MARKS)

Shuffle = Callable[[bytes, Sequence[int]], Sequence[int]]


def seeds(count: int):
    """So many seeds of hands; those of a long run come from the operating system."""
    start = QUICK_SEED if count <= 50_000 else os.urandom(32)
    sys.stdout.write(f"seed {start.hex()}\n")
    for number in range(count):
        yield hashlib.sha256(start + number.to_bytes(8, "big")).digest()


def sample(count: int, cards: Sequence[int], number: int) -> np.ndarray:
    """Rows of places of `cards`, shuffled by the service's own shuffle."""
    rank_of = {card: at for at, card in enumerate(cards)}
    rows = bytearray()
    for seed in seeds(count):
        rows += bytes(rank_of[card] for card in shuffling.shuffled(seed, CONTEXT, number, cards))
    return np.frombuffer(rows, dtype=np.uint8).reshape(count, len(cards))


@pytest.fixture
def least_p(capsys: pytest.CaptureFixture[str]) -> Callable[[str, Sequence[Verdict]], float]:
    """Writes the figures to the terminal, captured or not, and returns the least p."""

    def tell(title: str, verdicts: Sequence[Verdict]) -> float:
        with capsys.disabled():
            sys.stdout.write("".join(f"\n  {title}: {verdict}" for verdict in verdicts))
        return min(verdict.p for verdict in verdicts)

    return tell


@pytest.mark.parametrize("count", [QUICK, LONG])
def test_opening_shuffles_are_uniform(count: int, least_p) -> None:
    assert least_p(f"{count} decks", judge(sample(count, tuple(range(52)), 0))) > P_LEAST


@pytest.mark.parametrize("count", [QUICK, LONG])
def test_reshuffles_are_uniform(count: int, least_p) -> None:
    assert least_p(f"{count} reshuffles", judge(sample(count, RESHUFFLED_CARDS, 1))) > P_LEAST


def naive(rng: random.Random) -> list[int]:
    """Every place exchanged with any: n to the n ways do not divide into n! orders."""
    cards = list(range(52))
    for at in range(52):
        other = rng.randrange(52)
        cards[at], cards[other] = cards[other], cards[at]
    return cards


def without_rejection(rng: random.Random) -> list[int]:
    """The service's own shuffle, but for the rejection of the bytes that favour low places."""
    cards = list(range(52))
    for last in range(51, 0, -1):
        chosen = rng.randrange(256) % (last + 1)
        cards[last], cards[chosen] = cards[chosen], cards[last]
    return cards


def one_place_left_alone(rng: random.Random) -> list[int]:
    """Right, but that every 25th deck keeps its last card."""
    cards = list(range(52))
    rng.shuffle(cards)
    if rng.random() < 0.04:
        at = cards.index(51)
        cards[at], cards[51] = cards[51], cards[at]
    return cards


def riffled_thrice(rng: random.Random) -> list[int]:
    """Three riffles: places look well after few more, runs do not."""
    cards = list(range(52))
    for _ in range(3):
        cut = sum(rng.random() < 0.5 for _ in cards)
        left, right, mixed = cards[:cut], cards[cut:], []
        while left or right:
            heap = left if rng.random() * (len(left) + len(right)) < len(left) else right
            mixed.append(heap.pop(0))
        cards = mixed
    return cards


@pytest.mark.parametrize("biased", [naive, without_rejection, one_place_left_alone, riffled_thrice])
def test_a_biased_shuffle_is_rejected(biased: Callable[[random.Random], list[int]]) -> None:
    rng = random.Random(17)
    count = 5_000 if biased is riffled_thrice else 25_000
    orders = np.array([biased(rng) for _ in range(count)], dtype=np.uint8)
    assert min(verdict.p for verdict in judge(orders)) < 1e-12


def test_sound_shuffles_of_another_kind_pass_the_same_tests() -> None:
    orders = np.random.default_rng(23).permuted(np.tile(np.arange(52, dtype=np.uint8), (50_000, 1)), axis=1)
    assert min(verdict.p for verdict in judge(orders)) > P_LEAST


@pytest.mark.parametrize("case", ODDS, ids=lambda case: f"{''.join(case['hand'])} draw {case['draw']}")
@pytest.mark.parametrize("count", [pytest.param(1_500, id="quick"), pytest.param(60_000, id="long", marks=LONG_MARKS)])
def test_draws_to_each_hand_of_the_odds_table(case: dict, count: int, least_p) -> None:
    """The hand is put on top of a deck that is otherwise shuffled; deal and exchange are the service's own."""
    hand = [number_of(card) for card in case["hand"]]
    keep = {number_of(card) for card in case["keep"]}
    discards = [card for card in hand if card not in keep]
    others = tuple(card for card in range(52) if card not in hand)
    found: Counter[str] = Counter()
    for seed in seeds(count):
        deck = dealing.open_deck((*hand, *shuffling.shuffled(seed, CONTEXT, 0, others)))
        deck, _ = dealing.deal(deck, (1,))
        deck, _ = dealing.exchange(deck, 1, discards, len(discards), shuffler=lambda pool, _: pool)
        found[category(rank(deck.hands[1]))] += 1
    verdict = draw_verdict("draw", found, case["counts"])
    title = f"{count} times {''.join(case['hand'])}"
    assert (least_p(title, [verdict]) if count > 2_000 else verdict.p) > P_LEAST


# How many cards a seat draws to what it was dealt, and the ways to each result (golden/odds.json).
HABITS = {
    "pair": {"pair": 11559, "two_pair": 2592, "three_of_a_kind": 1854, "full_house": 165, "four_of_a_kind": 45},
    "two_pair": {"two_pair": 43, "full_house": 4},
    "three_of_a_kind": {"three_of_a_kind": 969, "full_house": 66, "four_of_a_kind": 46},
}


@pytest.mark.parametrize("count", [pytest.param(6_000, id="quick"), pytest.param(400_000, id="long", marks=LONG_MARKS)])
def test_draws_of_dealt_hands_at_a_full_table(count: int, least_p) -> None:
    """Six seats are dealt from whole shuffles, and draw in turn to what they got.

    The first four can never need a reshuffle of the stub of 22, so nothing conditions what they draw.
    """
    found: dict[str, Counter[str]] = {kind: Counter() for kind in HABITS}
    for seed in seeds(count):
        deck = dealing.open_deck(shuffling.shuffled(seed, CONTEXT, 0, tuple(range(52))))
        deck, _ = dealing.deal(deck, (1, 2, 3, 4, 5, 6))
        for seat in (1, 2, 3, 4):
            held = deck.hands[seat]
            kind = category(rank(held))
            ranks = Counter(card // 4 for card in held)
            discards = [card for card in held if ranks[card // 4] == 1] if kind in HABITS else held
            deck, _ = dealing.exchange(deck, seat, discards, len(discards), shuffler=lambda pool, _: pool)
            if kind in HABITS:
                found[kind][category(rank(deck.hands[seat]))] += 1
        assert deck.shuffle == 0
    verdicts = [draw_verdict(kind, found[kind], counts) for kind, counts in HABITS.items()]
    assert least_p(f"{count} hands", verdicts) > P_LEAST
