"""What a scenario file has to look like: known keys, none missing, whole numbers where chips are meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from services.rules.refusals import REASONS

ACTIONS: Final = ("fold", "check", "call", "bet", "raise")

_REQUIRED: Final = ("rulebook", "stacks", "button", "hands", "script")
_KEYS: Final = (*_REQUIRED, "name", "rule", "options", "carry", "posts", "stub", "reshuffles", "expect")
_STEP_KEYS: Final = ("seat", "do", "to", "cards", "refused")
_SIGHT_KEYS: Final = ("stage", "to_act", "legal", "pot", "drawn", "hand", "stacks")
_LEGAL_KEYS: Final = ("fold", "check", "call", "bet", "raise", "max_discards")
_END_KEYS: Final = ("outcome", "stacks", "pots", "carry", "rake", "shown", "mucked", "returned", "button")
_POT_KEYS: Final = ("amount", "winners")

_Cards = str | list[str]


class ScenarioInvalid(ValueError):
    """A file that is no scenario; the text names every fault found."""


class _Sight(msgspec.Struct):
    stage: str = ""
    to_act: int | None = None
    legal: dict[str, Any] | None = None
    pot: int = 0
    drawn: dict[str, int] = {}
    hand: dict[str, _Cards] = {}
    stacks: dict[str, int] = {}


class _Step(msgspec.Struct):
    seat: int = 0
    do: str = ""
    to: int = 0
    cards: _Cards = ""
    refused: str = ""
    clock: int = 0
    expect: _Sight = msgspec.field(default_factory=_Sight)


class _Pot(msgspec.Struct):
    amount: int = 0
    winners: dict[str, int] = {}


class _End(msgspec.Struct):
    outcome: str | None = None
    stacks: dict[str, int] = {}
    pots: list[_Pot] = []
    carry: int = 0
    rake: int = 0
    shown: list[int] = []
    mucked: list[int] = []
    returned: dict[str, int] = {}
    button: int = 0


class _Scenario(msgspec.Struct):
    rulebook: str = ""
    stacks: dict[str, int] = {}
    button: int = 0
    hands: dict[str, _Cards] = {}
    script: list[_Step] = []
    name: str = ""
    rule: str = ""
    options: dict[str, Any] = {}
    carry: int = 0
    posts: dict[str, int] = {}
    stub: _Cards = ""
    reshuffles: list[_Cards] = []
    expect: _End = msgspec.field(default_factory=_End)


def check_shape(scenario: Mapping[str, Any]) -> None:
    """Raise `ScenarioInvalid` with every unknown or missing key, or with the first value of a wrong kind.

    Chips are whole numbers: neither `true` nor `5.0` is one.
    """
    try:
        read = msgspec.convert(_without_floats(scenario), _Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioInvalid(str(error)) from error
    faults = list(_faults_of(scenario, read))
    if faults:
        raise ScenarioInvalid("; ".join(faults))


def _faults_of(scenario: Mapping[str, Any], read: _Scenario) -> Iterator[str]:
    yield from _unknown("", scenario, _KEYS)
    yield from (f"{key!r} is missing" for key in _REQUIRED if key not in scenario)
    by_seat: dict[str, Iterable[str]] = {"stacks": read.stacks, "hands": read.hands, "posts": read.posts}
    for key, table in by_seat.items():
        yield from (f"{key}: {seat!r} is no seat's number" for seat in table if not _is_number(seat))
    if "button" in scenario and str(read.button) not in read.stacks:
        yield f"button: {read.button} is no seat of stacks"
    if read.carry < 0:
        yield f"carry: {read.carry} is below zero"
    end = scenario.get("expect", {})
    yield from _unknown("expect: ", end, _END_KEYS)
    for pot in end.get("pots", ()):
        yield from _unknown("expect: pots: ", pot, _POT_KEYS)
    for number, step in enumerate(scenario.get("script", ()), 1):
        yield from _faults_of_step(f"step {number}: ", step)


def _faults_of_step(where: str, step: Mapping[str, Any]) -> Iterator[str]:
    if "expect" in step:
        sight = step["expect"]
        yield from _unknown(where, step, ["expect"]) + _unknown(where, sight, _SIGHT_KEYS)
        yield from _unknown(where + "legal: ", sight.get("legal") or {}, _LEGAL_KEYS)
        return
    if "clock" in step:
        yield from _unknown(where, step, ["clock"])
        return
    yield from _unknown(where, step, _STEP_KEYS)
    missing = [key for key in ("seat", "do") if key not in step]
    if step.get("do") in ("bet", "raise") and "to" not in step:
        missing.append("to")
    yield from (f"{where}{key!r} is missing" for key in missing)
    if "do" in step and step["do"] not in (*ACTIONS, "discard"):
        yield f"{where}do: {step['do']!r} is nothing that a seat can do"
    if step.get("refused", REASONS[0]) not in REASONS:
        yield f"{where}refused: {step['refused']!r} is no reason"


def _unknown(where: str, table: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    return [f"{where}unknown key {key!r}" for key in table if key not in known]


def _is_number(seat: str) -> bool:
    return seat.isascii() and seat.isdecimal() and len(seat) <= 3


def _without_floats(value: Any) -> Any:
    """The same value with floats as text, which no field takes that wants a whole number: 5.0 is no amount of chips."""
    if isinstance(value, float):
        return f"{value}"
    if isinstance(value, Mapping):
        return {key: _without_floats(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_floats(each) for each in value]
    return value
