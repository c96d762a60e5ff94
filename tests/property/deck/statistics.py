"""Chi-square tests over whole permutations, each with the law that it really has.

The pieces are chosen so that the laws are exact: places are corrected for the dependence of a permutation's cells,
pairs and gaps are taken from disjoint places or cards, one category a permutation, and runs follow Eulerian numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Verdict:
    """One test's outcome: `p` is the probability of a statistic so high from uniform permutations."""

    name: str
    statistic: float
    freedom: int
    p: float

    def __str__(self) -> str:
        return (
            f"{self.name:12} chi-square {self.statistic:12.1f} on {self.freedom:6} degrees of freedom, p = {self.p:.4g}"
        )


def judge(orders: np.ndarray) -> list[Verdict]:
    """All tests over `orders`: one row a permutation of 0..n-1."""
    return [places(orders), *pairs(orders), runs(orders), *gaps(orders)]


def places(orders: np.ndarray) -> Verdict:
    """Which card lies where."""
    count, size = orders.shape
    cells = np.stack([np.bincount(orders[:, place], minlength=size) for place in range(size)])
    expected = count / size
    statistic = ((cells - expected) ** 2).sum() / expected * (size - 1) / size
    freedom = (size - 1) ** 2
    return Verdict("places", statistic, freedom, stats.chi2.sf(statistic, freedom))


def pairs(orders: np.ndarray, most: int = 8) -> Iterator[Verdict]:
    """Which two cards follow each other, at disjoint places."""
    count, size = orders.shape
    step = max(2, size // most // 2 * 2)
    for place in range(0, size - 1, step):
        cells = np.bincount(orders[:, place].astype(np.int64) * size + orders[:, place + 1], minlength=size * size)
        cells = cells.reshape(size, size)[~np.eye(size, dtype=bool)]
        yield _multinomial(f"pair at {place}", cells, np.full(cells.size, count / cells.size))


def runs(orders: np.ndarray) -> Verdict:
    """How many ascending runs a permutation has: Eulerian numbers over n!."""
    count, size = orders.shape
    found = (np.diff(orders.astype(np.int64), axis=1) < 0).sum(axis=1)
    eulerian = [1]
    for n in range(2, size + 1):
        longer = [*eulerian, 0]
        eulerian = [(k + 1) * longer[k] + (n - k) * (longer[k - 1] if k else 0) for k in range(n)]
    expected = np.array([count * (each / factorial(size)) for each in eulerian])
    return _multinomial("runs", np.bincount(found, minlength=size), expected)


def gaps(orders: np.ndarray, most: int = 8) -> Iterator[Verdict]:
    """How far apart two cards lie, for disjoint pairs of cards."""
    count, size = orders.shape
    where = np.argsort(orders, axis=1)
    distances = np.arange(1, size)
    expected = count * 2 * (size - distances) / (size * (size - 1))
    for card in range(0, size - 1, max(2, size // most // 2 * 2)):
        found = np.abs(where[:, card] - where[:, card + 1])
        yield _multinomial(f"gap of {card}", np.bincount(found, minlength=size)[1:], expected)


def _multinomial(name: str, found: np.ndarray, expected: np.ndarray, least: float = 8.0) -> Verdict:
    """Chi-square over categories; those expected less than `least` times are taken together."""
    rare = expected < least
    if rare.any():
        found = np.append(found[~rare], found[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < least:
            found = np.append(found[:-2], found[-2:].sum())
            expected = np.append(expected[:-2], expected[-2:].sum())
    statistic = float(((found - expected) ** 2 / expected).sum())
    return Verdict(name, statistic, len(found) - 1, stats.chi2.sf(statistic, len(found) - 1))


def draw_verdict(name: str, found: dict[str, int], counts: dict[str, int]) -> Verdict:
    """Results of draws against the exact number of ways to each."""
    assert set(found) <= set(counts), "a result that the draw cannot have"
    drawn, ways = sum(found.values()), sum(counts.values())
    kinds = list(counts)
    expected = np.array([drawn * counts[kind] / ways for kind in kinds])
    return _multinomial(name, np.array([found.get(kind, 0) for kind in kinds]), expected, least=5.0)
