"""Random tables: a rulebook with a random mix of options, stacks, a carry, newcomers; and a scenario file of it."""

from __future__ import annotations

import random
from typing import Any

from services.cli.dealt_hand import DealtHand
from services.rules.cards import format_cards
from services.rules.hand import start_hand
from services.rules.rulebook import Rulebook, RulebookInvalid, load_rulebook

NAMES = ("casadela", "openers", "american", "clocked", "house")


def random_options(chance: random.Random, name: str) -> dict[str, Any]:
    """Overrides that make a playable rulebook; most of them differ from the rulebook's own."""
    while True:
        options = _draft(chance, name)
        try:
            load_rulebook(name).with_options(options)
        except RulebookInvalid:
            continue
        return options


def _draft(chance: random.Random, name: str) -> dict[str, Any]:
    options: dict[str, Any] = {"seats": chance.choice((2, 3, 4, 6, 8, 9))}
    betting = chance.choice(("fixed_limit", "spread_limit", "pot_limit", "no_limit"))
    if name == "american" and chance.random() < 0.7:
        betting = "spread_limit"
    options["betting"] = betting
    blinds = name not in ("openers", "american")
    big = chance.choice((2, 3, 5, 10, 15, 20))
    options["ante"] = chance.choice((0, 0, 1, 3)) if blinds else chance.choice((1, 2, 5, 10))
    options["chip_unit"] = chance.choice((1, 1, 1, 5))
    if blinds:
        options["big_blind"] = big
        if chance.random() < 0.5:
            options["small_blind"] = chance.choice((0, 1, big // 2, big))
    if betting == "fixed_limit":
        options |= {"small_bet": big, "big_bet": 2 * big}
    if betting == "spread_limit":
        low = chance.choice((1, 2, 5))
        options |= {"spread_min": low, "spread_max": low + chance.choice((2, 3, 10, 20))}
    extra = {
        "bets_per_round": (0, 2, 3, 4, 5),
        "second_round_all_checked": ("showdown", "pass_out"),
        "reshuffle": ("stub_first", "mixed"),
        "missed_draw": ("stand_pat", "stand_pat_no_raise"),
        "losers": ("may_muck", "show_all"),
        "odd_chips": ("left_of_button", "next_pot"),
        "button_after_pass_out": ("stays", "moves"),
        "rake_basis_points": (0, 250, 500, 1000),
        "rake_cap": (0, 1, 3, 1000),
        "second_round": ("check_or_bet", "bet_or_fold"),
    }
    for option, values in extra.items():
        if chance.random() < 0.35:
            options[option] = chance.choice(values)
    if name == "openers":
        options["openers"] = chance.choice(("QQ", "JJ", "AA", "22", ""))
        if chance.random() < 0.3:
            options |= {"single_four_card_draw": False, "max_draw": chance.choice((0, 3, 5))}
    elif chance.random() < 0.25:
        options |= {"single_four_card_draw": True, "max_draw": 4}
    elif chance.random() < 0.3:
        options["max_draw"] = chance.choice((0, 1, 2, 3, 4, 5))
    return options


def random_table(chance: random.Random, name: str | None = None) -> dict[str, Any]:
    """A scenario without a script: everything that a hand starts from."""
    name = name or chance.choice(NAMES)
    options = random_options(chance, name)
    book = load_rulebook(name).with_options(options)
    count = chance.choice((2, 2, 3, 4, book.seats, book.seats))
    seats = sorted(chance.sample(range(1, 10), min(count, book.seats)))
    unit = book.unit_stake
    depth = chance.choice((1, 3, 10, 100))
    stacks = {seat: chance.randint(1, max(1, chance.choice((1, depth, depth)) * unit)) for seat in seats}
    button = chance.choice(seats)
    table = {
        "name": "fuzz",
        "rule": "fuzz",
        "rulebook": name,
        "options": options,
        "stacks": stacks,
        "button": button,
        "carry": chance.choice((0, 0, 0, 1, 7, 40)),
        "posts": {},
        "deck": chance.sample(range(52), 52),
    }
    if book.big_blind and len(seats) > 3 and chance.random() < 0.3:
        blinds = start_hand(book, stacks, button).seats[:2]
        table["posts"] = {chance.choice([seat for seat in seats if seat not in blinds]): book.big_blind}
    return table


def rulebook_of(table: dict[str, Any]) -> Rulebook:
    return load_rulebook(table["rulebook"]).with_options(table["options"])


class Shuffles:
    """Reshuffles from a seed, remembered so that a scenario file can say them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.orders: list[tuple[int, ...]] = []

    def __call__(self, cards: tuple[int, ...], number: int) -> tuple[int, ...]:
        order = list(cards)
        self._chance.shuffle(order)
        assert number == len(self.orders) + 1
        self.orders.append(tuple(order))
        return tuple(order)


def open_hand(table: dict[str, Any], shuffles: Shuffles) -> DealtHand:
    state = start_hand(rulebook_of(table), table["stacks"], table["button"], table["carry"], table["posts"])
    return DealtHand(state, tuple(table["deck"]), shuffles)


def scenario_of(
    table: dict[str, Any], hand: DealtHand, script: list[dict[str, Any]], shuffles: Shuffles
) -> dict[str, Any]:
    """A scenario file's content for a hand that was played so far."""
    deck, seats = table["deck"], hand.state.seats
    size = len(seats)
    return {
        **{key: value for key, value in table.items() if key != "deck"},
        "stacks": {str(seat): chips for seat, chips in table["stacks"].items()},
        "posts": {str(seat): chips for seat, chips in table["posts"].items()},
        "hands": {str(seat): format_cards(deck[index : 5 * size : size]) for index, seat in enumerate(seats)},
        "stub": format_cards(deck[5 * size :]),
        "reshuffles": [format_cards(order) for order in shuffles.orders],
        "script": script,
        "expect": {},
    }
