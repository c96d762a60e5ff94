"""Forced bets: antes, blinds, newcomers' posts (RULES 3.2, 4, 6)."""

from __future__ import annotations

from services.rules.events import AnyEvent, ForcedBetPosted, ForcedKind
from services.rules.state import HandState


def forced_bets(state: HandState) -> list[AnyEvent]:
    """The forced bets of the hand in the order they are posted: antes, small blind, big blind, live and dead posts.

    A stack too short for one is all-in with it. A newcomer that is itself in a blind posts what is missing to its post.
    """
    rulebook, seats = state.rulebook, state.seats
    stacks, put = list(state.stacks), [0] * len(seats)
    events: list[AnyEvent] = []

    def post(position: int, kind: ForcedKind, due: int, live: bool) -> None:
        amount = min(due, stacks[position])
        if amount <= 0:
            return
        stacks[position] -= amount
        if live:
            put[position] += amount
        events.append(ForcedBetPosted(seats[position], kind, amount, live, not stacks[position]))

    if rulebook.ante:
        for position in range(len(seats)):
            post(position, "ante", rulebook.ante, False)
    if rulebook.big_blind:
        # Heads-up the button posts the small blind; it is the last position.
        small, big = (0, 1) if len(seats) > 2 else (1, 0)
        post(small, "small_blind", rulebook.small_blind, True)
        post(big, "big_blind", rulebook.big_blind, True)
    if any(state.posts):
        for position, due in enumerate(state.posts):
            post(position, "post", due - put[position], True)
    if any(state.dead_posts):
        for position, due in enumerate(state.dead_posts):
            post(position, "dead_post", due, False)
    return events
