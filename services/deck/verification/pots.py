"""Pots by what the seats paid, who may win which, in what order hands are shown, and how a pot is shared.

None of it needs a rulebook: it follows from table stakes (docs/fairness.md, "The course of a hand") and from four
options that stand in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BASIS_POINTS = 10_000


@dataclass(frozen=True, slots=True)
class PotDue:
    """A pot as it must be: its chips, the live seats that can win it (clockwise), how many seats paid into it."""

    amount: int
    eligible: tuple[int, ...]
    payers: int


def uncalled(paid: Mapping[int, int], live: Sequence[int]) -> tuple[int, int]:
    """The seat whose chips nobody called, and how many; zeros if there is none. `paid` has every seat dealt in."""
    second, first = sorted(paid.values())[-2:]
    owner = next(seat for seat, chips in paid.items() if chips == first)
    return (owner, first - second) if first > second and owner in live else (0, 0)


def pots_due(paid: Mapping[int, int], live: Sequence[int], extra: int) -> list[PotDue]:
    """All pots that hold chips, the main pot first. `live` is clockwise; it holds `extra` (carry, dead posts).

    Chips above what any live seat paid fall into the last pot that two can win.
    """
    pots: list[PotDue] = []
    below = 0
    for level in sorted({paid[seat] for seat in live}):
        layers = [min(chips, level) - below for chips in paid.values() if chips > below]
        pots.append(PotDue(sum(layers), tuple(seat for seat in live if paid[seat] >= level), len(layers)))
        below = level
    above = sum(chips - below for chips in paid.values() if chips > below)
    contested = [index for index, pot in enumerate(pots) if len(pot.eligible) > 1]
    last = contested[-1] if contested else len(pots) - 1
    for index, more in ((last, above), (0, extra)):
        pot = pots[index]
        pots[index] = PotDue(pot.amount + more, pot.eligible, pot.payers)
    return [pot for pot in pots if pot.amount]


def showing_order(pots: Sequence[PotDue], clockwise: Sequence[int], first: int) -> list[int]:
    """Seats in the order they show or muck: those of the last side pot before the others, `first` before its left."""
    start = clockwise.index(first)
    turned = [*clockwise[start:], *clockwise[:start]]
    order: list[int] = []
    for pot in reversed(pots):
        if len(pot.eligible) > 1:
            order += [seat for seat in turned if seat in pot.eligible and seat not in order]
    return order


def rakes_due(pots: Sequence[PotDue], basis_points: int, cap: int) -> list[int]:
    """What the house takes of each pot: a part of those that two or more paid into, until the hand's cap (0: none)."""
    taken: list[int] = []
    for pot in pots:
        rake = pot.amount * basis_points // BASIS_POINTS if pot.payers > 1 else 0
        taken.append(min(rake, cap - sum(taken)) if cap else rake)
    return taken


def shares_due(amount: int, winners: Sequence[int], odd_chips_stay: bool) -> tuple[dict[int, int], int]:
    """Equal shares by seat, and the odd chips that stay; else the first winners clockwise get one of them each."""
    share, odd = divmod(amount, len(winners))
    if odd_chips_stay:
        return dict.fromkeys(winners, share), odd
    return {seat: share + (place < odd) for place, seat in enumerate(winners)}, 0
