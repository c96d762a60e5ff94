"""Which of two hands is better, by poker's usual order; aces are low in 5-4-3-2-A only, and suits decide nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_RANKS = "23456789TJQKA"
_WHEEL = [12, 3, 2, 1, 0]
# How many cards of each rank a hand has, most first: its worth among hands that are neither straight nor flush.
_SHAPES = {(4, 1): 7, (3, 2): 6, (3, 1, 1): 3, (2, 2, 1): 2, (2, 1, 1, 1): 1, (1, 1, 1, 1, 1): 0}
_STRAIGHT_FLUSH, _FLUSH, _STRAIGHT = 8, 5, 4


def worth_of(cards: Sequence[str]) -> tuple[int, ...]:
    """Compares as five cards do: the better hand is the greater tuple, equal hands are equal."""
    ranks = sorted((_RANKS.index(card[0]) for card in cards), reverse=True)
    counts = Counter(ranks)
    grouped = sorted(counts, key=lambda rank: (counts[rank], rank), reverse=True)
    is_flush = len({card[1] for card in cards}) == 1
    if len(counts) == len(ranks) and (ranks[0] - ranks[-1] == len(ranks) - 1 or ranks == _WHEEL):
        high = ranks[1] if ranks == _WHEEL else ranks[0]
        return _STRAIGHT_FLUSH if is_flush else _STRAIGHT, high
    shape = _SHAPES[tuple(sorted(counts.values(), reverse=True))]
    return max(shape, _FLUSH if is_flush else shape), *grouped
