"""The end of a hand: who shows or mucks in which order, and which pot is paid to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.deck.dealing import HAND_SIZE
from services.deck.verification import bodies as told
from services.deck.verification.exported import Options
from services.deck.verification.pots import pots_due, rakes_due, shares_due, showing_order
from services.deck.verification.ranking import worth_of


class CourseBrokenError(ValueError):
    """An event cannot be where it stands; the message says which and why, `check` under which name it is told."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check


def require(fine: bool, where: str, what: str, check: str = "events") -> None:
    """Raises `CourseBrokenError` unless it is fine."""
    if not fine:
        raise CourseBrokenError(check, f"{where}: {what}")


class Payout:
    """What is due once the last bets are collected."""

    def __init__(
        self,
        *,
        options: Options,
        cards: Mapping[int, Sequence[str]],
        paid: Mapping[int, int],
        clockwise: Sequence[int],
        live: Sequence[int],
        extra: int,
        aggressor: int,
        drew: bool,
        passed_out: bool,
    ) -> None:
        self._odd_chips_stay = options.odd_chips == "next_pot"
        self._pots = [] if passed_out else pots_due(paid, live, extra)
        rake = (options.rake_basis_points, options.rake_cap_minor) if drew else (0, 0)
        self._rakes = rakes_due(self._pots, *rake)
        # What each seat's five cards are worth, of those that this viewer knows.
        self._worth = {seat: worth_of(held) for seat, held in cards.items() if len(set(held)) == len(held) == HAND_SIZE}
        self._live = tuple(live)
        self._pot = sum(paid.values()) + extra
        self.outcome = "passed_out" if passed_out else "uncontested" if len(live) == 1 else "showdown"
        is_showdown = self.outcome == "showdown"
        self._to_show = showing_order(self._pots, clockwise, aggressor or clockwise[0]) if is_showdown else []
        self._shown: set[int] = set()
        self._left = len(self._pots)
        self._wins: dict[int, int] = {}
        self._carried = self._pot if passed_out else 0

    def shows(self, seat: int, is_shown: bool, where: str) -> None:
        """A seat shows or mucks at the showdown."""
        require(bool(self._to_show) and seat == self._to_show[0], where, f"seat {seat} is not the next to show or muck")
        del self._to_show[0]
        if is_shown:
            self._shown.add(seat)

    def shows_unasked(self, seat: int, where: str) -> None:
        """A seat shows after the end."""
        fine = seat in self._live and seat not in self._shown and self.outcome != "passed_out"
        require(fine, where, f"seat {seat} has nothing to show")
        self._shown.add(seat)

    def award(self, pot: told.Pot, where: str) -> None:
        """The next pot is paid: side pots before the main one."""
        require(not self._to_show, where, f"seats {self._to_show} neither showed nor mucked")
        require(self._left > 0 and pot.index == self._left - 1, where, f"pot {self._left - 1} is the next to be paid")
        self._left -= 1
        due, rake = self._pots[pot.index], self._rakes[pot.index]
        require(pot.amount_minor == due.amount, where, f"pot {pot.index} holds {due.amount}", "chips")
        require(pot.rake_minor == rake, where, f"the rake of pot {pot.index} is {rake}", "chips")
        winners = tuple(seat for seat in due.eligible if str(seat) in pot.winners)
        fine = 0 < len(winners) == len(pot.winners)
        require(fine, where, f"only seats {list(due.eligible)} can win pot {pot.index}", "chips")
        for seat in winners:
            # What one seat alone can win, it wins without showing.
            require(len(due.eligible) == 1 or seat in self._shown, where, f"seat {seat} wins and did not show")
        if len(due.eligible) > 1:
            worth = {seat: self._worth[seat] for seat in due.eligible if seat in self._worth}
            best = tuple(seat for seat in worth if worth[seat] == max(worth.values()))
            require(winners == best, where, f"seats {list(best)} have the best hand for pot {pot.index}", "winner")
        shares, odd = shares_due(due.amount - rake, winners, self._odd_chips_stay)
        paid = {int(seat): amount for seat, amount in pot.winners.items()}
        require(paid == shares, where, f"the shares of pot {pot.index} are {shares}", "chips")
        self._carried += odd
        self._won(shares)

    def ended(self, body: told.HandEnded, where: str, stacks: dict[int, int]) -> None:
        """The hand is decided; `stacks` are the seats' chips before they were paid."""
        require(not self._left, where, f"pot {self._left - 1} was paid to nobody")
        require(body.outcome == self.outcome, where, f"the hand ended {self.outcome}", "chips")
        rake = sum(self._rakes)
        require(body.rake_minor == rake, where, f"the pots were raked {rake}", "chips")
        require(body.carry_minor == self._carried, where, f"{self._carried} are carried to the next hand", "chips")
        for seat, before in sorted(stacks.items()):
            due, found = before + self._wins.get(seat, 0), body.stacks_minor.get(str(seat))
            require(found == due, where, f"seat {seat} ends with {found}, its events say {due}", "chips")
        require(len(body.stacks_minor) == len(stacks), where, "it tells stacks of seats that are not in it", "chips")

    def _won(self, shares: Mapping[int, int]) -> None:
        for seat, amount in shares.items():
            self._wins[seat] = self._wins.get(seat, 0) + amount
