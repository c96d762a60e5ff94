"""Random hands over all rulebooks and option mixes, every invariant checked after every event.

    python -m tests.property.rules.fuzz --hands 100000 [--seed N]

The seed is printed. A hand that breaks an invariant is written as a scenario file, which `fivedraw scenario` can run.
"""

# ruff: noqa: T201 - a program that people run and read

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from services.cli.dealt_hand import DealtHand
from services.cli.scenario import run_scenario, sight
from services.rules.cards import format_cards
from services.rules.commands import Act, AnyCommand, ClockRanOut, Discard
from services.rules.events import AnyEvent
from services.rules.hand import legal
from tests.property.rules import invariants
from tests.property.rules.tables import Shuffles, open_hand, random_table, scenario_of

STEPS_AT_MOST = 600
"""Far above any real hand's length; a hand that takes longer does not end."""


def random_command(chance: random.Random, hand: DealtHand) -> tuple[AnyCommand, dict[str, Any]]:
    """A legal command for the seat to act, and the step of a scenario that says it."""
    state = hand.state
    seat = state.seats[state.to_act]
    options = legal(state, seat)
    if chance.random() < 0.08:
        return ClockRanOut(seat), {"clock": seat}
    if options.max_discards is not None:
        count = chance.randint(0, options.max_discards) if chance.random() < 0.5 else options.max_discards
        cards = tuple(chance.sample(state.hands[state.to_act], count))
        return Discard(seat, cards), {"seat": seat, "do": "discard", "cards": format_cards(cards).split()}
    kinds = [kind for kind in ("check", "call") if getattr(options, kind) not in (None, False)]
    kinds += [*kinds, "fold"] if options.fold else kinds
    if options.bet:
        kinds += ["bet"] * 2
    if options.raise_:
        kinds += ["raise"]
    kind = chance.choice(kinds)
    bounds = options.bet if kind == "bet" else options.raise_ if kind == "raise" else None
    if bounds is None:
        return Act(seat, kind), {"seat": seat, "do": kind}
    least, most = bounds
    to = chance.choice((least, most, chance.randint(least, most), min(most, least + chance.randint(0, 9))))
    return Act(seat, kind, to), {"seat": seat, "do": kind, "to": to}


def play(seed: int | str, script: list[dict[str, Any]], thorough: bool) -> tuple[dict[str, Any], DealtHand, Shuffles]:
    """One hand from its seed, checked all the way; `script` fills as it goes."""
    chance = random.Random(seed)
    table = random_table(chance)
    shuffles = Shuffles(chance)
    hand = open_hand(table, shuffles)
    start = hand.state
    chips = sum(table["stacks"].values()) + table["carry"]
    script.append({"table": (table, hand, shuffles)})
    hand.begin()
    checked = 0
    while True:
        fresh: list[AnyEvent] = hand.events[checked:]
        checked = len(hand.events)
        invariants.check_chips(hand.state, chips)
        invariants.check_cards(hand)
        if thorough:
            invariants.check_secrets(hand.state, fresh)
        if hand.state.outcome is not None:
            break
        if thorough:
            invariants.check_legality(hand.state)
        command, step = random_command(chance, hand)
        script.append(step)
        invariants.demand(len(script) < STEPS_AT_MOST, "every hand ends")
        hand.do(command)
    invariants.check_turns(hand.events)
    invariants.check_accounts(table, hand)
    invariants.check_settlement(hand)
    invariants.check_uncalled(hand)
    invariants.check_replay(start, hand)
    return table, hand, shuffles


def failing_scenario(script: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """The scenario file of a hand that broke an invariant."""
    table, hand, shuffles = script[0]["table"]
    scenario = scenario_of(table, hand, script[1:], shuffles)
    return {**scenario, "rule": what}


def check_scenario_of(table: dict[str, Any], hand: DealtHand, script: list[dict[str, Any]], shuffles: Shuffles) -> None:
    """The hand, written as a scenario with what was seen at its end, passes as one."""
    seen = {"expect": {key: value for key, value in sight(hand.state).items() if key != "pot"}}
    differences = run_scenario(scenario_of(table, hand, [*script[1:], seen], shuffles))
    invariants.demand(not differences, f"a hand's own scenario passes: {differences}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hands", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--thorough-every", type=int, default=4, help="probe all legal bounds in one hand of so many")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    broken = 0
    started = time.monotonic()
    outcomes: dict[str, int] = {}
    for number in range(arguments.hands):
        script: list[dict[str, Any]] = []
        try:
            played = play(f"{seed}-{number}", script, number % arguments.thorough_every == 0)
            if number % 50 == 0:
                check_scenario_of(*played[:2], script, played[2])
            outcome = f"{played[0]['rulebook']} {played[1].state.outcome}"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        except Exception as error:  # noqa: BLE001 - whatever breaks is written down with its hand
            broken += 1
            arguments.out.mkdir(parents=True, exist_ok=True)
            path = arguments.out / f"fuzz-{seed}-{number}.json"
            if script:
                path.write_text(json.dumps(failing_scenario(script, f"{type(error).__name__}: {error}"), indent=1))
            print(f"hand {number}: {type(error).__name__}: {error}; written to {path}", flush=True)
            traceback.print_exc(limit=-3)
            if broken >= 20:
                break
        if (number + 1) % 10_000 == 0:
            print(f"{number + 1} hands, {broken} broken, {time.monotonic() - started:.0f} s", flush=True)
    for outcome in sorted(outcomes):
        print(f"  {outcomes[outcome]:7} {outcome}")
    print(f"{arguments.hands} hands, {broken} broken an invariant")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
