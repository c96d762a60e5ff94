"""`fivedraw scenario FILE...`: run hands with a known deck and compare what comes out with what they expect.

One JSON file is one hand. Unknown keys are an error that names them. The format is described in docs/rulebooks.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from services.cli.dealt_hand import DealtHand
from services.cli.scenario_shape import ScenarioInvalid, check_shape
from services.rules.cards import CardUnknown, format_cards, parse_cards
from services.rules.commands import Act, AnyCommand, ClockRanOut, Discard
from services.rules.hand import legal, start_hand
from services.rules.refusals import CommandInvalid, Refusal
from services.rules.rulebook import RulebookInvalid, RulebookUnknown, load_rulebook
from services.rules.state import HandState


class _ScriptedShuffler:
    """Gives the listed cards first, the others in ascending order; remembers a card that may not be there."""

    def __init__(self, reshuffles: Sequence[tuple[int, ...]]) -> None:
        self._reshuffles = reshuffles

    def __call__(self, cards: tuple[int, ...], number: int) -> tuple[int, ...]:
        first = self._reshuffles[number - 1] if number <= len(self._reshuffles) else ()
        wrong = [card for card in first if card not in cards]
        if wrong or len(set(first)) < len(first):
            raise ScenarioInvalid(f"reshuffle {number}: {format_cards(wrong or first)} may not be there")
        return (*first, *(card for card in cards if card not in first))


def run_scenario(scenario: Mapping[str, Any], rulebooks: Path | None = None) -> list[str]:
    """The differences between a scenario and what the engine does; none if it passes. Raises `ScenarioInvalid`."""
    check_shape(scenario)
    try:
        return _differences(_open(scenario, rulebooks), scenario)
    except CardUnknown as error:
        raise ScenarioInvalid(str(error)) from error


def _differences(hand: DealtHand, scenario: Mapping[str, Any]) -> list[str]:
    hand.begin()
    differences: list[str] = []
    for number, step in enumerate(scenario["script"], 1):
        found = _take_step(hand, step)
        differences += [f"step {number}: {difference}" for difference in found]
        if found and "expect" not in step:
            return differences
    return differences + [f"end: {difference}" for difference in _compare(_end(hand.state), scenario.get("expect", {}))]


def _open(scenario: Mapping[str, Any], rulebooks: Path | None) -> DealtHand:
    try:
        rulebook = load_rulebook(scenario["rulebook"], rulebooks).with_options(scenario.get("options", {}))
        state = start_hand(
            rulebook,
            _by_seat(scenario["stacks"]),
            scenario["button"],
            scenario.get("carry", 0),
            _by_seat(scenario.get("posts", {})),
        )
        hands = {int(seat): parse_cards(cards) for seat, cards in scenario["hands"].items()}
        stub = parse_cards(scenario.get("stub", ""))
        reshuffles = [parse_cards(cards) for cards in scenario.get("reshuffles", ())]
    except (RulebookInvalid, RulebookUnknown, CardUnknown, ValueError, TypeError) as error:
        raise ScenarioInvalid(str(error)) from error
    if hands.keys() != set(state.seats) or any(len(cards) != 5 for cards in hands.values()):
        raise ScenarioInvalid("hands: five cards for each seat of stacks, and for no other")
    listed = [hands[seat][turn] for turn in range(5) for seat in state.seats] + list(stub)
    if len(set(listed)) < len(listed):
        twice = sorted({card for card in listed if listed.count(card) > 1})
        raise ScenarioInvalid(f"{format_cards(twice)} is in hands and stub more than once")
    order = (*listed, *(card for card in range(52) if card not in listed))
    return DealtHand(state, order, _ScriptedShuffler(reshuffles))


def _by_seat(table: Mapping[str, int]) -> dict[int, int]:
    return {int(seat): chips for seat, chips in table.items()}


def _take_step(hand: DealtHand, step: Mapping[str, Any]) -> list[str]:
    if "expect" in step:
        return _compare(sight(hand.state), step["expect"])
    before = hand.state
    reason = None
    try:
        hand.do(_command(step))
    except Refusal as refusal:
        reason = refusal.reason
    except CommandInvalid as error:
        raise ScenarioInvalid(str(error)) from error
    if reason != step.get("refused"):
        did = f"{step.get('do', 'clock')} of seat {step.get('seat', step.get('clock'))}"
        return [f"{did}: refused {step.get('refused')} expected, {reason} found"]
    if reason is not None and hand.state != before:
        return [f"a refused {step['do']} changed the hand"]
    return []


def _command(step: Mapping[str, Any]) -> AnyCommand:
    if "clock" in step:
        return ClockRanOut(step["clock"])
    if step["do"] == "discard":
        return Discard(step["seat"], parse_cards(step.get("cards", ())))
    return Act(step["seat"], step["do"], step.get("to", 0))


def sight(state: HandState) -> dict[str, Any]:
    """Everything that an `expect` step can look at."""
    seats = state.seats
    to_act = state.seat_at(state.to_act)
    actions = msgspec.to_builtins(legal(state, to_act))
    most = actions.pop("max_discards")
    return {
        "stage": state.stage,
        "to_act": to_act,
        "legal": None if to_act is None else {"max_discards": most} if state.stage == "draw" else _lists(actions),
        "pot": state.pot,
        "drawn": {str(seat): count for seat, count in zip(seats, state.drawn, strict=True) if count >= 0},
        "hand": {str(seat): format_cards(sorted(hand)) for seat, hand in zip(seats, state.hands, strict=True)},
        "stacks": {str(seat): chips for seat, chips in zip(seats, state.stacks, strict=True)},
    }


def _lists(actions: dict[str, Any]) -> dict[str, Any]:
    return {kind: list(value) if isinstance(value, tuple) else value for kind, value in actions.items()}


def _end(state: HandState) -> dict[str, Any]:
    if state.outcome is None:
        return {"outcome": None}
    seats = state.seats
    return {
        "outcome": state.outcome,
        "stacks": {str(seat): chips for seat, chips in zip(seats, state.stacks, strict=True)},
        "pots": [
            {"amount": pot.amount, "winners": {str(seat): chips for seat, chips in pot.winners.items()}}
            for pot in state.pots
        ],
        "carry": state.carry_out,
        "rake": state.rake,
        "shown": [seats[position] for position in state.shown],
        "mucked": sorted(seats[position] for position in state.mucked),
        "returned": {str(seat): chips for seat, chips in zip(seats, state.returned, strict=True) if chips},
        "button": state.next_button,
    }


def _compare(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    differences = []
    for key, wanted in expected.items():
        value = found.get(key)
        if key == "hand":
            wanted = {seat: format_cards(sorted(parse_cards(cards))) for seat, cards in wanted.items()}  # noqa: PLW2901
        if key == "mucked":
            wanted = sorted(wanted)  # noqa: PLW2901
        if key in ("stacks", "drawn", "hand") and isinstance(value, Mapping):
            value = {seat: value.get(seat) for seat in wanted}
        if key == "pots" and isinstance(value, list) and len(value) == len(wanted):
            value = [{part: pot[part] for part in asked} for pot, asked in zip(value, wanted, strict=True)]
        if value != wanted:
            differences.append(f"{key}: {json.dumps(wanted)} expected, {json.dumps(value)} found")
    return differences


def run_file(path: Path, rulebooks: Path | None = None) -> list[str]:
    """The differences of the scenario in a file; a file that is no scenario is one difference that says why."""
    try:
        scenario = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(scenario, dict):
            return ["not a scenario: the file holds no JSON object"]
        return run_scenario(scenario, rulebooks)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        return [f"cannot be read: {error}"]
    except RecursionError:
        return ["cannot be read: nested too deep"]
    except ScenarioInvalid as error:
        return [f"not a scenario: {error}"]


@click.command("scenario")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--rulebooks",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of further rulebooks (TOML).",
)
def scenario_command(files: tuple[Path, ...], rulebooks: Path | None) -> None:
    """Run scenario FILES; name what differs. The exit status is 0 if all pass."""
    passed = 0
    for path in files:
        differences = run_file(path, rulebooks)
        passed += not differences
        for difference in differences:
            click.echo(f"{path}: {difference}")
    click.echo(f"{passed} of {len(files)} pass")
    sys.exit(passed < len(files))


if __name__ == "__main__":
    scenario_command()
