"""The end of a hand: who shows in which order, who may muck, who is paid what (RULES 3.7 to 3.9, 5, 11)."""

from __future__ import annotations

from services.rules.events import AnyEvent, HandEnded, HandMucked, HandShown, Outcome, PassedOut, PotAwarded
from services.rules.pots import Pot, build_pots, rakes, split
from services.rules.ranking import describe, rank
from services.rules.state import HandState


def showdown(state: HandState) -> list[AnyEvent]:
    """Hands shown and mucked, pots paid, the hand ended."""
    pots = build_pots(state)
    ranks = {position: rank(state.hands[position]) for position in state.live_positions()}
    events: list[AnyEvent] = []
    best = 0
    for position in showing_order(state, pots):
        hand_rank = ranks[position]
        lost = hand_rank < best
        if lost and state.rulebook.losers == "may_muck" and state.auto_muck >> position & 1:
            events.append(HandMucked(state.seats[position]))
            continue
        best = max(best, hand_rank)
        events.append(HandShown(state.seats[position], state.hands[position], describe(hand_rank)))
    return events + _pay(state, pots, ranks, "showdown")


def showing_order(state: HandState, pots: list[Pot]) -> list[int]:
    """Positions in the order they show: those of the highest contested side pot, then of the next, the main pot last.

    Within each, the last to bet or raise in the second round begins, else the first left of the button; then clockwise.
    A pot that one seat alone can win plays no part.
    """
    start = max(state.aggressor, 0)
    size = len(state.seats)
    clockwise = [(start + step) % size for step in range(size)]
    order: list[int] = []
    for pot in reversed(pots):
        if pot.contested:
            order += [position for position in clockwise if position in pot.eligible and position not in order]
    return order


def uncontested(state: HandState) -> list[AnyEvent]:
    """All others folded: the last live seat takes everything unshown."""
    (winner,) = state.live_positions()
    return _pay(state, build_pots(state), {winner: 0}, "uncontested")


def passed_out(state: HandState) -> list[AnyEvent]:
    """All checked: no showdown, no rake, the pot stays for the next hand."""
    pot = state.pot
    moves = state.rulebook.button_after_pass_out == "moves"  # noqa: S105 - a choice of the rulebook, no password
    button = _next_button(state, state.stacks) if moves else state.button
    stacks = dict(zip(state.seats, state.stacks, strict=True))
    return [PassedOut(pot), HandEnded("passed_out", stacks, pot, 0, button)]


def _pay(state: HandState, pots: list[Pot], ranks: dict[int, int], outcome: Outcome) -> list[AnyEvent]:
    rulebook, seats = state.rulebook, state.seats
    # A hand that ended before the draw pays no rake; `drawn` tells, since each live seat draws or stands pat.
    raked = rakes(rulebook, pots) if max(state.drawn) >= 0 else [0] * len(pots)
    stacks = list(state.stacks)
    carried = 0
    paid: list[AnyEvent] = []
    for index, pot in enumerate(pots):
        best = max(ranks[position] for position in pot.eligible)
        winners = tuple(position for position in pot.eligible if ranks[position] == best)
        shares, odd = split(rulebook, pot.amount - raked[index], winners)
        for position, share in shares.items():
            stacks[position] += share
        carried += odd
        by_seat = {seats[position]: share for position, share in shares.items()}
        paid.append(PotAwarded(index, pot.amount, by_seat, raked[index], odd, pot.contested))
    # Side pots are paid first.
    paid.reverse()
    button = _next_button(state, tuple(stacks))
    paid.append(HandEnded(outcome, dict(zip(seats, stacks, strict=True)), carried, sum(raked), button))
    return paid


def _next_button(state: HandState, stacks: tuple[int, ...]) -> int:
    """The next seat clockwise that has chips; the button's own comes last."""
    return next((seat for seat, stack in zip(state.seats, stacks, strict=True) if stack), state.button)
