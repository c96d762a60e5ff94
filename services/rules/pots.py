"""Pots: what was uncalled, the layers, the rake and the odd chips (RULES 3.9, 4)."""

from __future__ import annotations

import msgspec

from services.rules.rulebook import Rulebook
from services.rules.state import HandState


class Pot(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A pot before it is paid: its chips, the live positions that can win it, how many seats paid into it."""

    amount: int
    eligible: tuple[int, ...]
    payers: int

    @property
    def contested(self) -> bool:
        """True if more than one live seat can win it."""
        return len(self.eligible) > 1


def uncalled(state: HandState) -> tuple[int, int]:
    """The position whose chips nobody called, and how many; (-1, 0) if there is none."""
    first, second, owner = -1, -1, -1
    for position, chips in enumerate(state.total):
        if chips > first:
            first, second, owner = chips, first, position
        elif chips > second:
            second = chips
    if first == second or not state.live >> owner & 1:
        return -1, 0
    return owner, first - second


def build_pots(state: HandState) -> list[Pot]:
    """The pots, main pot first, by what the live seats put in.

    A carried pot and dead posts are in the main pot. Chips above what any live seat put in fall into the highest
    contested pot. A pot without chips is left out.
    """
    total = state.total
    live = state.live_positions()
    levels = sorted({total[position] for position in live})
    pots: list[Pot] = []
    below = 0
    for level in levels:
        paid = [chips if chips < level else level for chips in total if chips > below]
        eligible = tuple([position for position in live if total[position] >= level])
        pots.append(Pot(sum(paid) - below * len(paid), eligible, len(paid)))
        below = level
    above = sum([chips - below for chips in total if chips > below])
    if above:
        index = max((index for index, pot in enumerate(pots) if pot.contested), default=len(pots) - 1)
        pots[index] = msgspec.structs.replace(pots[index], amount=pots[index].amount + above)
    extra = state.carry + state.dead
    if extra:
        pots[0] = msgspec.structs.replace(pots[0], amount=pots[0].amount + extra)
    return [pot for pot in pots if pot.amount]


def rakes(rulebook: Rulebook, pots: list[Pot]) -> list[int]:
    """The rake of each pot: basis points of those that two or more seats paid into, main pot first, up to the cap."""
    left = rulebook.rake_cap or None
    taken = []
    for pot in pots:
        rake = pot.amount * rulebook.rake_basis_points // 10_000 if pot.payers > 1 else 0
        if left is not None:
            rake = min(rake, left)
            left -= rake
        taken.append(rake)
    return taken


def split(rulebook: Rulebook, amount: int, winners: tuple[int, ...]) -> tuple[dict[int, int], int]:
    """Shares by position of `amount` among `winners` (ascending), and the odd chips that stay for the next pot."""
    share, odd = divmod(amount, len(winners))
    if rulebook.odd_chips == "next_pot":
        return dict.fromkeys(winners, share), odd
    return {winner: share + (index < odd) for index, winner in enumerate(winners)}, 0
