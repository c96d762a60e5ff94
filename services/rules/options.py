"""The options of a rulebook: their names, kinds, defaults and how one follows from another (RULES 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Value = int | str | bool

MAX_AMOUNT: Final = 2**63 - 1

Betting = Literal["fixed_limit", "spread_limit", "pot_limit", "no_limit"]
FirstRound = Literal["blinds", "check_or_open", "open_or_fold"]
SecondRound = Literal["check_or_bet", "bet_or_fold"]


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with a rulebook: which option, what is wrong about it, and what would be right."""

    option: str
    wrong: str
    right: str

    def __str__(self) -> str:
        return f"{self.option}: {self.wrong}; {self.right}"


class RulebookInvalid(ValueError):
    """A rulebook, or overrides of one, that cannot be played. `faults` names everything wrong with it at once."""

    def __init__(self, name: str, faults: tuple[Fault, ...]) -> None:
        super().__init__(f"rulebook {name!r}: " + "; ".join(str(fault) for fault in faults))
        self.name = name
        self.faults = faults


CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "betting": ("fixed_limit", "spread_limit", "pot_limit", "no_limit"),
    "first_round": ("blinds", "check_or_open", "open_or_fold"),
    "first_round_all_checked": ("pass_out",),
    "second_round": ("check_or_bet", "bet_or_fold"),
    "second_round_all_checked": ("showdown", "pass_out"),
    "reshuffle": ("stub_first", "mixed"),
    "missed_draw": ("stand_pat", "stand_pat_no_raise"),
    "losers": ("may_muck", "show_all"),
    "odd_chips": ("left_of_button", "next_pot"),
    "button_after_pass_out": ("stays", "moves"),
    "openers": ("", *(2 * rank for rank in "23456789TJQKA")),
}
FLAGS: Final = ("single_four_card_draw", "cut")
RANGES: Final[dict[str, tuple[int, int]]] = {
    "seats": (2, 9),
    "ante": (0, MAX_AMOUNT),
    "small_blind": (0, MAX_AMOUNT),
    "big_blind": (0, MAX_AMOUNT),
    "chip_unit": (1, MAX_AMOUNT),
    "small_bet": (0, MAX_AMOUNT),
    "big_bet": (0, MAX_AMOUNT),
    "spread_min": (0, MAX_AMOUNT),
    "spread_max": (0, MAX_AMOUNT),
    "bets_per_round": (0, 1000),
    "max_draw": (0, 5),
    "action_clock_ms": (1, 86_400_000),
    "draw_clock_ms": (1, 86_400_000),
    "time_bank_ms": (0, 86_400_000),
    "time_bank_growth_ms": (0, 86_400_000),
    "rake_basis_points": (0, 10_000),
    "rake_cap": (0, MAX_AMOUNT),
    "min_buy_in": (1, 1_000_000),
    "max_buy_in": (1, 1_000_000),
}

_DEFAULTS: Final[dict[str, Value]] = {
    "seats": 6,
    "chip_unit": 1,
    "betting": "no_limit",
    "first_round": "blinds",
    "openers": "",
    "first_round_all_checked": "pass_out",
    "second_round": "check_or_bet",
    "second_round_all_checked": "showdown",
    "max_draw": 5,
    "single_four_card_draw": False,
    "cut": False,
    "reshuffle": "stub_first",
    "action_clock_ms": 20_000,
    "missed_draw": "stand_pat",
    "losers": "may_muck",
    "odd_chips": "left_of_button",
    "button_after_pass_out": "stays",
    "rake_basis_points": 0,
    "rake_cap": 0,
    "time_bank_ms": 30_000,
    "time_bank_growth_ms": 1_000,
    "min_buy_in": 20,
    "max_buy_in": 100,
    "spread_min": 0,
    "spread_max": 0,
}

# An override of one of these replaces the rulebook's own stakes, so that what is not overridden follows from it.
_STAKES: Final = frozenset({"small_bet", "big_bet", "big_blind"})
_FOLLOW_STAKES: Final = _STAKES | {"small_blind"}

OPTION_NAMES: Final = (*CHOICES, *FLAGS, *RANGES)


def override(given: Mapping[str, Value], overrides: Mapping[str, Value]) -> dict[str, Value]:
    """What is given after `overrides`. Stakes of the base that an overridden stake contradicts are dropped."""
    dropped = _FOLLOW_STAKES if _STAKES & overrides.keys() else frozenset()
    return {**{option: value for option, value in given.items() if option not in dropped}, **overrides}


def fault_of(option: str, value: object) -> Fault | None:
    """What is wrong with this one value by itself, or None."""
    if option in CHOICES:
        if value in CHOICES[option] and isinstance(value, str):
            return None
        return Fault(option, f"{value!r} is no choice", "one of " + ", ".join(repr(c) for c in CHOICES[option]))
    if option in FLAGS:
        return None if isinstance(value, bool) else Fault(option, f"{value!r} is not a yes or no", "true or false")
    if option in RANGES:
        least, most = RANGES[option]
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return None
        return Fault(option, f"{value!r} is out of range", f"a whole number from {least} to {most}")
    return Fault(option, "no rulebook has this option", "one of " + ", ".join(sorted(OPTION_NAMES)))


def derive(given: Mapping[str, Value]) -> dict[str, Value]:
    """Every option's value: the given ones, and the others from defaults and from what they follow.

    Raises nothing; the values given must be sound each by itself (`fault_of`).
    """
    full: dict[str, Value] = {**_DEFAULTS, **given}

    def number(option: str, otherwise: int) -> int:
        return int(given.get(option, otherwise))

    blinds = full["first_round"] == "blinds"
    fixed = full["betting"] == "fixed_limit"
    ante = number("ante", 0 if blinds or full["betting"] != "spread_limit" else int(full["spread_min"]))
    big_blind = number("big_blind", number("small_bet", number("big_bet", 0) // 2) if blinds else 0)
    small_bet = number("small_bet", number("big_bet", 0) // 2 or big_blind or ante) if fixed else 0
    unit = int(full["chip_unit"])
    full["ante"] = ante
    full["big_blind"] = big_blind
    full["small_blind"] = number("small_blind", big_blind // 2 // unit * unit)
    full["small_bet"] = small_bet
    full["big_bet"] = number("big_bet", 2 * small_bet) if fixed else 0
    full["bets_per_round"] = number("bets_per_round", 4 if fixed else 0)
    full["draw_clock_ms"] = number("draw_clock_ms", int(full["action_clock_ms"]))
    return full
