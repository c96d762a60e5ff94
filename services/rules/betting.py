"""Betting: who may do what, for how much, and whose turn is next (RULES 3.4, 3.6, 4, 11).

The same functions tell a seat its legal actions and refuse what is not among them: `*_refusal` says why a kind of
action is out of the question whatever the amount, `bet_bounds` and `raise_bounds` give the amounts.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from services.rules.commands import ActionKind
from services.rules.events import Acted
from services.rules.ranking import lowest_of_pair, parse_rank, plural_of, rank
from services.rules.refusals import CommandInvalid, Refusal
from services.rules.rulebook import Rulebook
from services.rules.state import HandState

Bounds = tuple[int, int]


class LegalActions(msgspec.Struct, frozen=True, gc=False, rename={"raise_": "raise"}):
    """What the seat to act may do.

    `call` is the chips to add, `bet` and `raise_` the least and the most level to go to; None where not allowed.
    `max_discards` is None outside of the draw, where everything else is.
    """

    fold: bool = False
    check: bool = False
    call: int | None = None
    bet: Bounds | None = None
    raise_: Bounds | None = None
    max_discards: int | None = None


NO_ACTIONS = LegalActions()


def least_bet(rulebook: Rulebook, second_round: bool) -> int:
    """The least bet of a round, which is also the least raise until there was a full bet."""
    if rulebook.betting == "fixed_limit":
        return rulebook.big_bet if second_round else rulebook.small_bet
    if rulebook.betting == "spread_limit":
        return rulebook.spread_min + 1
    return rulebook.big_blind or rulebook.ante


def legal_bets(state: HandState, position: int) -> LegalActions:
    """The legal actions of the position to act in a betting round."""
    put, level = state.put[position], state.level
    if level:
        bet = None
        raised = None if raise_refusal(state, position) else raise_bounds(state, position)
    else:
        bet = None if bet_refusal(state, position) else bet_bounds(state, position)
        raised = None
    check = may_check(state, position)
    call = to_call(state, position) if level > put else None
    return LegalActions(may_fold(state, check), check, call, bet, raised)


def may_check(state: HandState, position: int) -> bool:
    """True if this position owes nothing, in a round where one may check."""
    return state.level <= state.put[position] and not _bet_or_fold(state)


def may_fold(state: HandState, may_check: bool) -> bool:
    """With check-or-open nobody folds while checking is free, after the draw either; otherwise always."""
    return not may_check or state.rulebook.first_round != "check_or_open"


def to_call(state: HandState, position: int) -> int:
    """The chips that a call adds: all it has, if that is less."""
    owed, stack = state.level - state.put[position], state.stacks[position]
    return owed if owed < stack else stack


def _bet_or_fold(state: HandState) -> bool:
    if state.stage == "first_round":
        return state.rulebook.first_round == "open_or_fold"
    return state.rulebook.second_round == "bet_or_fold"


def bet_refusal(state: HandState, position: int) -> Refusal | None:
    """Why this position may not bet, whatever the amount."""
    if state.level:
        return Refusal("CANNOT_BET", level=state.level)
    openers = state.rulebook.openers
    if (
        openers
        and state.stage == "first_round"
        and rank(state.hands[position]) < lowest_of_pair(parse_rank(openers[0]))
    ):
        return Refusal("OPENERS_REQUIRED", openers=openers, rank=plural_of(parse_rank(openers[0])))
    if state.barred >> position & 1:
        return Refusal("MAY_NOT_RAISE")
    return None


def raise_refusal(state: HandState, position: int) -> Refusal | None:
    """Why this position may not raise, whatever the amount."""
    rulebook, level = state.rulebook, state.level
    if level:
        if rulebook.bets_per_round and state.bets >= rulebook.bets_per_round:
            return Refusal("RAISE_CAPPED", cap=rulebook.bets_per_round, level=level)
        if state.closed >> position & 1 and (
            rulebook.betting == "fixed_limit" or level - state.put[position] < state.least_raise
        ):
            return Refusal("BETTING_NOT_REOPENED", level=level, least_raise=state.least_raise)
        if state.barred >> position & 1:
            return Refusal("MAY_NOT_RAISE")
        live, put = state.live, state.put
        for other, stack in enumerate(state.stacks):
            if stack and other != position and live >> other & 1 and put[other] + stack > level:
                return None
    elif state.barred >> position & 1:
        return Refusal("MAY_NOT_RAISE")
    return Refusal("NOTHING_TO_RAISE", level=level)


def bet_bounds(state: HandState, position: int) -> Bounds:
    """The least and most level of an opening bet; an all-in below the least is legal, so the stack caps both."""
    rulebook, reach = state.rulebook, state.put[position] + state.stacks[position]
    second = state.stage == "second_round"
    least = least_bet(rulebook, second)
    betting = rulebook.betting
    if betting == "no_limit":
        most = reach
    elif betting == "pot_limit":
        most = max(least, state.pot)
    elif betting == "spread_limit":
        most = rulebook.spread_max - second
    else:
        most = least
    return least if least < reach else reach, most if most < reach else reach


def raise_bounds(state: HandState, position: int) -> Bounds | None:
    """The least and most level of a raise, None where the stack does not reach beyond a call."""
    rulebook, level, put = state.rulebook, state.level, state.put[position]
    reach = put + state.stacks[position]
    if reach <= level:
        return None
    least = level + state.least_raise
    betting = rulebook.betting
    if betting == "no_limit":
        most = reach
    elif betting == "pot_limit":
        most = max(least, level + state.pot + level - put)
    elif betting == "spread_limit":
        most = level + rulebook.spread_max - (state.stage == "second_round")
    else:
        least = most = state.full_level + state.least_raise
    return least if least < reach else reach, most if most < reach else reach


def act(state: HandState, position: int, kind: ActionKind, to: int, by_clock: bool) -> Acted:
    """The action of the position to act, or a `Refusal`."""
    stack, put, level = state.stacks[position], state.put[position], state.level
    if kind == "call":
        if level <= put:
            raise Refusal("NOTHING_TO_CALL", level=level)
        return _acted(state, position, kind, to_call(state, position), by_clock)
    if kind == "fold":
        if not may_fold(state, may_check(state, position)):
            raise Refusal("CANNOT_FOLD")
        return _acted(state, position, kind, 0, by_clock)
    if kind == "check":
        if not may_check(state, position):
            instead = f"call {to_call(state, position)}, raise or fold" if level > put else "bet or fold"
            raise Refusal("CANNOT_CHECK", instead=instead, level=level)
        return _acted(state, position, kind, 0, by_clock)
    bounds: Bounds | None
    if kind == "bet":
        refusal = bet_refusal(state, position)
        bounds = None if refusal else bet_bounds(state, position)
    elif kind == "raise":
        refusal = raise_refusal(state, position)
        bounds = None if refusal else raise_bounds(state, position)
    else:
        raise CommandInvalid(f"{kind!r} is no action")
    if refusal is not None:
        raise refusal
    _check_amount(to, put + stack, level, bounds)
    return _raised(state, position, kind, to, by_clock)


def _check_amount(to: int, reach: int, level: int, bounds: Bounds | None) -> None:
    # Where the stack does not reach beyond the call, everything within it is below the minimum.
    least, most = bounds or (level + 1, level + 1)
    if to > reach:
        raise Refusal("STACK_EXCEEDED", tried=to, reach=reach, least=least, most=most)
    if to < least:
        raise Refusal("BELOW_MINIMUM", tried=to, least=least, most=most)
    if to > most:
        raise Refusal("ABOVE_MAXIMUM", tried=to, least=least, most=most)


def _acted(state: HandState, position: int, kind: ActionKind, added: int, by_clock: bool) -> Acted:
    put, live, stacks = list(state.put), state.live, list(state.stacks)
    if kind == "fold":
        live &= ~(1 << position)
    elif added:
        put[position] += added
        stacks[position] -= added
    following = next_to_act(position + 1, live, state.closed | 1 << position, stacks, put, state.level)
    return Acted(
        state.seats[position],
        kind,
        added,
        put[position],
        not stacks[position],
        by_clock,
        state.level,
        state.least_raise,
        state.full_level,
        state.bets,
        False,
        None if following < 0 else state.seats[following],
    )


def _raised(state: HandState, position: int, kind: ActionKind, to: int, by_clock: bool) -> Acted:
    put, stacks, level = list(state.put), list(state.stacks), state.level
    added = to - put[position]
    if state.rulebook.betting == "fixed_limit":
        # At least half a bet beyond the last full level counts as a bet; less is an extra that others may complete.
        full = 2 * (to - state.full_level) >= state.least_raise
        least_raise = state.least_raise
    else:
        full = to - level >= state.least_raise
        least_raise = to - level if full else state.least_raise
    put[position] = to
    stacks[position] -= added
    closed = 1 << position | (0 if full else state.closed)
    following = next_to_act(position + 1, state.live, closed, stacks, put, to)
    return Acted(
        state.seats[position],
        kind,
        added,
        to,
        not stacks[position],
        by_clock,
        to,
        least_raise,
        to if full else state.full_level,
        state.bets + full,
        full,
        None if following < 0 else state.seats[following],
    )


def next_to_act(  # noqa: PLR0917 - the hot path passes by position
    start: int, live: int, closed: int, stacks: Sequence[int], put: Sequence[int], level: int
) -> int:
    """The next position from `start` on that still has to act in this round, or -1 when the round is over.

    Who has to act is able (live, chips behind) and owes chips or has not acted. A lone able seat is asked only if some
    other live seat has put in more: nobody bets against seats that are all-in.
    """
    if not live & (live - 1):
        return -1
    size = len(stacks)
    able, candidate = 0, -1
    for step in range(start, start + size):
        position = step if step < size else step - size
        if live >> position & 1 and stacks[position]:
            able += 1
            if candidate < 0 and (put[position] < level or not closed >> position & 1):
                candidate = position
            if able > 1 and candidate >= 0:
                return candidate
    if candidate < 0:
        return -1
    own = put[candidate]
    for position in range(size):
        if live >> position & 1 and put[position] > own:
            return candidate
    return -1
