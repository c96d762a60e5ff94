"""What has to come before the deal: antes and blinds in full, and posts of whoever missed some (RULES 3.2 and 6).

A stack too short for a forced bet is all-in with it. Antes and blinds follow from the options and the seats alone.
Which seat owes a post does not: that was decided in earlier hands. So of posts it is checked how much they are, in
which order they come, that no blind posts, and that a dead blind comes beside a live post.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from services.deck.verification import bodies as told
from services.deck.verification.exported import Options
from services.deck.verification.payout import require

_POSTS = ("post", "dead_blind")


class Due(NamedTuple):
    """One forced bet that must come."""

    kind: str
    seat: int
    amount: int

    def __str__(self) -> str:
        return f"the {self.kind} of seat {self.seat}"


class ForcedBets:
    """The forced bets of a hand as they come, against those that are due."""

    def __init__(self, options: Options, clockwise: Sequence[int], stacks: Mapping[int, int]) -> None:
        # Heads-up the button, which is the last clockwise, posts the small blind.
        small, big = clockwise[:2] if len(clockwise) > 2 else (clockwise[1], clockwise[0])
        self._blinds = (small, big)
        self._sizes = {"post": options.big_blind_minor, "dead_blind": options.small_blind_minor}
        self._due = _all_due(options, clockwise, self._blinds, stacks)
        self._places = {seat: place for place, seat in enumerate(clockwise)}
        self._last_post = (-1, -1)
        self._posted: set[int] = set()

    def take(self, body: told.ForcedBetPosted, stack: int, where: str) -> None:
        """The next forced bet, of a seat that has `stack` before it. Raises `CourseBrokenError`."""
        if not self._due:
            self._post(body, stack, where)
            return
        due = self._due.pop(0)
        require((body.kind, body.seat) == (due.kind, due.seat), where, f"{due} is the next forced bet")
        require(body.amount_minor == due.amount, where, f"{due} is {due.amount}, not {body.amount_minor}", "chips")

    def complete(self, where: str) -> None:
        """The cards are dealt: nothing may be due any more. Raises `CourseBrokenError`."""
        require(not self._due, where, f"{self._due[0] if self._due else ''} did not come")

    def _post(self, body: told.ForcedBetPosted, stack: int, where: str) -> None:
        kind, seat = body.kind, body.seat
        size = self._sizes.get(kind, 0)
        require(size > 0, where, f"no {kind} is due from anybody")
        require(seat not in self._blinds, where, f"seat {seat} is in the blinds, and posts nothing besides")
        place = (_POSTS.index(kind), self._places[seat])
        require(place > self._last_post, where, "it is out of order")
        self._last_post = place
        if kind == "post":
            self._posted.add(seat)
        # Who missed blinds owes both of them, the big one first.
        require(seat in self._posted, where, f"seat {seat} has no post beside its dead blind")
        due = Due(kind, seat, min(size, stack))
        require(body.amount_minor == due.amount, where, f"{due} is {due.amount}, not {body.amount_minor}", "chips")


def _all_due(
    options: Options, clockwise: Sequence[int], blinds: tuple[int, int], stacks: Mapping[int, int]
) -> list[Due]:
    """Antes of all clockwise, then the small and the big blind; what an empty stack cannot post is not due."""
    asked = [Due("ante", seat, options.ante_minor) for seat in clockwise]
    if options.big_blind_minor:
        asked.append(Due("small_blind", blinds[0], options.small_blind_minor))
        asked.append(Due("big_blind", blinds[1], options.big_blind_minor))
    left, due = dict(stacks), []
    for each in asked:
        amount = min(each.amount, left[each.seat])
        left[each.seat] -= amount
        if amount:
            due.append(each._replace(amount=amount))
    return due
