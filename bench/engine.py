"""Complete six-handed no-limit hands a second: this engine against pokerkit, in the same run on the same hands.

Each hand is fresh (a new shuffle, new state), has both betting rounds and a draw, and asks for the legal actions before
action: here `legal` and `step` (`decide` and `evolve` in one), there the `can_*` checks, bounds and operation.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import random
import time
from collections.abc import Callable
from importlib.metadata import version

import pokerkit

from services.rules.awaits import AwaitDeal, AwaitExchange
from services.rules.commands import Act, Begin, DeliverDeal, DeliverExchange, Discard
from services.rules.hand import awaits, legal, start_hand, step
from services.rules.rulebook import load_rulebook

SEATS = 6
STACK = 1000

# What the seats do, in turn: a raise, calls and folds, then a bet, a raise and calls after the draw.
FIRST = ("call", "raise", "call", "fold", "call", "call", "call")
SECOND = ("check", "bet", "call", "raise", "call", "call", "call")
DRAWS = (3, 2, 1, 0, 3, 3)

RULEBOOK = load_rulebook("house")


def engine_hand(deck: list[int]) -> int:
    """One hand of ours; the number of actions and discards taken."""
    state = start_hand(RULEBOOK, dict.fromkeys(range(1, SEATS + 1), STACK), 1)
    cursor, actions = 0, 0
    _, state = step(state, Begin())
    rounds = {"first_round": iter(FIRST), "second_round": iter(SECOND)}
    draws = iter(DRAWS)
    while state.outcome is None:
        if state.to_act < 0:
            due = awaits(state)
            if isinstance(due, AwaitDeal):
                hands = {seat: tuple(deck[5 * i : 5 * i + 5]) for i, seat in enumerate(due.seats)}
                cursor = 5 * SEATS
                _, state = step(state, DeliverDeal(hands))
            elif isinstance(due, AwaitExchange):
                cards = tuple(deck[cursor : cursor + due.draw_now])
                cursor += due.draw_now
                _, state = step(state, DeliverExchange(due.seat, cards))
            continue
        seat = state.seats[state.to_act]
        options = legal(state, seat)
        actions += 1
        if options.max_discards is not None:
            cards = state.hands[state.to_act][: min(next(draws), options.max_discards)]
            _, state = step(state, Discard(seat, cards))
            continue
        wish = next(rounds[state.stage], "call")
        if wish == "raise" and options.raise_:
            command = Act(seat, "raise", options.raise_[0])
        elif wish == "bet" and options.bet:
            command = Act(seat, "bet", options.bet[0])
        elif wish == "fold":
            command = Act(seat, "fold")
        else:
            command = Act(seat, "check" if options.check else "call")
        _, state = step(state, command)
    return actions


_AUTOMATIONS = (
    pokerkit.Automation.ANTE_POSTING,
    pokerkit.Automation.BET_COLLECTION,
    pokerkit.Automation.BLIND_OR_STRADDLE_POSTING,
    pokerkit.Automation.CARD_BURNING,
    pokerkit.Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    pokerkit.Automation.HAND_KILLING,
    pokerkit.Automation.CHIPS_PUSHING,
    pokerkit.Automation.CHIPS_PULLING,
)
_DEAL = pokerkit.Street(False, (False,) * 5, 0, False, pokerkit.Opening.POSITION, 10, None)
_DRAW = pokerkit.Street(False, (), 0, True, pokerkit.Opening.POSITION, 10, None)
_CARDS = tuple(pokerkit.Card.parse("".join(rank + suit for rank in "23456789TJQKA" for suit in "cdhs")))


def pokerkit_hand(deck: list[int]) -> int:
    """The same hand in pokerkit; the number of actions and discards taken."""
    state = pokerkit.State(
        _AUTOMATIONS,
        pokerkit.Deck.STANDARD,
        (pokerkit.StandardHighHand,),
        (_DEAL, _DRAW),
        pokerkit.BettingStructure.NO_LIMIT,
        True,
        0,
        (5, 10),
        0,
        STACK,
        SEATS,
    )
    cards = [_CARDS[card] for card in deck]
    for index in range(SEATS):
        state.deal_hole(cards[5 * index : 5 * index + 5])
    cursor, actions = 5 * SEATS, 0
    rounds = (iter(FIRST), iter(SECOND))
    draws = iter(DRAWS)
    while state.status:
        if state.can_stand_pat_or_discard():
            count = next(draws)
            held = list(state.hole_cards[state.stand_patter_or_discarder_index])[:count]
            state.stand_pat_or_discard(held)
            actions += 1
            continue
        if state.can_deal_hole():
            count = len(state.hole_dealing_statuses[state.hole_dealee_index])
            state.deal_hole(cards[cursor : cursor + count])
            cursor += count
            continue
        actions += 1
        wish = next(rounds[state.street_index], "call")
        can_fold = state.can_fold()
        can_call = state.can_check_or_call()
        least = state.min_completion_betting_or_raising_to_amount
        if wish in ("raise", "bet") and least is not None and state.can_complete_bet_or_raise_to(least):
            state.complete_bet_or_raise_to(least)
        elif wish == "fold" and can_fold:
            state.fold()
        elif can_call:
            state.check_or_call()
    return actions


def _rate(play: Callable[[list[int]], int], seconds: float, seed: int) -> tuple[float, float]:
    """Hands a second of processor time (so that other work on the machine does not count), and actions a hand."""
    chance = random.Random(seed)
    decks = [chance.sample(range(52), 52) for _ in range(200)]
    play(decks[0])
    hands = actions = 0
    started = time.process_time()
    while (elapsed := time.process_time() - started) < seconds:
        actions += play(decks[hands % len(decks)])
        hands += 1
    return hands / elapsed, actions / hands


def _where_the_time_goes(hands: int = 300) -> dict[str, float]:
    """Share of the engine's time by function, the eight that take most of their own."""
    chance = random.Random(3)
    decks = [chance.sample(range(52), 52) for _ in range(hands)]
    profile = cProfile.Profile()
    profile.enable()
    for deck in decks:
        engine_hand(deck)
    profile.disable()
    stats = pstats.Stats(profile)
    total = stats.total_tt
    spent = {f"{name[0].rsplit('/', 1)[-1]}:{name[2]}": timing[2] / total for name, timing in stats.stats.items()}
    return {name: round(spent[name], 3) for name in sorted(spent, key=spent.__getitem__, reverse=True)[:8]}


def run(seconds: float = 1.5, rounds: int = 3, seed: int = 7) -> dict[str, object]:
    """Key `engine_vs_pokerkit` of the bench: the best of some rounds each, taken in turn, and their ratio."""
    ours, theirs = [], []
    for number in range(rounds):
        ours.append(_rate(engine_hand, seconds, seed + number))
        theirs.append(_rate(pokerkit_hand, seconds, seed + number))
    best, best_theirs = max(ours), max(theirs)
    return {
        "engine_hands_per_second": round(best[0]),
        "pokerkit_hands_per_second": round(best_theirs[0]),
        "times_as_fast": round(best[0] / best_theirs[0], 2),
        "actions_per_hand": {"engine": best[1], "pokerkit": best_theirs[1]},
        "pokerkit": version("pokerkit"),
        "where_the_time_goes": _where_the_time_goes(),
    }


if __name__ == "__main__":
    print(json.dumps({"engine_vs_pokerkit": run()}, indent=1))
