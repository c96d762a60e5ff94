"""Rulebooks are data: defaults, what follows from what, every fault at once, a new game from a TOML file alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.cli.scenario import run_scenario
from services.rules.options import OPTION_NAMES, RANGES, RulebookInvalid, fault_of
from services.rules.rulebook import Rulebook, RulebookUnknown, list_rulebooks, load_rulebook

LANGUAGE = {"american": "pl", "casadela": "pt", "clocked": "uk", "openers": "pl"}


def faults(name: str, **options: Any) -> dict[str, str]:
    with pytest.raises(RulebookInvalid) as caught:
        load_rulebook(name).with_options(options)
    return {fault.option: fault.wrong for fault in caught.value.faults}


def test_the_five_rulebooks_with_texts_for_players():
    books = {book.name: book for book in list_rulebooks()}
    assert sorted(books) == ["american", "casadela", "clocked", "house", "openers"]
    for name, book in books.items():
        for texts in (book.titles, book.texts):
            assert texts["en"].strip()
        if name in LANGUAGE:
            assert book.titles[LANGUAGE[name]].strip()
            assert len(book.texts[LANGUAGE[name]]) > 200


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "casadela",
            {"betting": "fixed_limit", "small_bet": 500, "big_bet": 1000, "small_blind": 200, "big_blind": 500},
        ),
        ("casadela", {"seats": 6, "ante": 0, "chip_unit": 100, "bets_per_round": 4, "max_draw": 5, "cut": False}),
        (
            "openers",
            {"ante": 10, "betting": "no_limit", "first_round": "check_or_open", "openers": "QQ", "max_draw": 4},
        ),
        ("openers", {"single_four_card_draw": True, "second_round_all_checked": "pass_out", "big_blind": 0}),
        ("openers", {"button_after_pass_out": "stays", "seats": 6}),
        (
            "american",
            {"seats": 8, "ante": 1, "betting": "spread_limit", "spread_min": 1, "spread_max": 10, "cut": True},
        ),
        (
            "american",
            {"first_round": "open_or_fold", "second_round": "bet_or_fold", "max_draw": 3, "odd_chips": "next_pot"},
        ),
        ("clocked", {"betting": "no_limit", "small_blind": 5, "big_blind": 10, "missed_draw": "stand_pat_no_raise"}),
        ("clocked", {"action_clock_ms": 20_000, "draw_clock_ms": 30_000, "cut": False}),
        ("house", {"betting": "no_limit", "small_blind": 5, "big_blind": 10, "cut": True, "draw_clock_ms": 20_000}),
        ("house", {"time_bank_ms": 30_000, "min_buy_in": 20, "max_buy_in": 100, "rake_basis_points": 0, "rake_cap": 0}),
    ],
)
def test_defaults(name: str, options: dict[str, Any]):
    found = load_rulebook(name).options()
    assert {option: found[option] for option in options} == options


@pytest.mark.parametrize(
    ("name", "options", "follows"),
    [
        ("house", {"big_blind": 15}, {"small_blind": 7}),
        (
            "casadela",
            {"betting": "no_limit", "big_blind": 1500},
            {"small_blind": 700, "small_bet": 0, "bets_per_round": 0},
        ),
        ("casadela", {"chip_unit": 1}, {"small_blind": 250, "big_blind": 500}),
        ("casadela", {"small_bet": 20, "chip_unit": 1}, {"big_bet": 40, "big_blind": 20, "small_blind": 10}),
        ("casadela", {"big_blind": 20, "chip_unit": 1}, {"small_bet": 20, "big_bet": 40}),
        ("casadela", {"betting": "pot_limit"}, {"big_blind": 500, "small_blind": 200}),
        ("house", {"betting": "fixed_limit"}, {"small_bet": 10, "big_bet": 20, "bets_per_round": 4}),
        ("house", {"betting": "fixed_limit", "small_bet": 20}, {"big_blind": 20, "small_blind": 10, "big_bet": 40}),
        ("house", {"small_blind": 1}, {"big_blind": 10, "small_blind": 1}),
        ("american", {"spread_min": 5, "spread_max": 10}, {"ante": 5}),
        ("openers", {"betting": "fixed_limit"}, {"small_bet": 10, "big_blind": 0, "small_blind": 0}),
        ("house", {"action_clock_ms": 5000}, {"draw_clock_ms": 5000}),
        ("clocked", {"action_clock_ms": 5000}, {"draw_clock_ms": 30_000}),
    ],
)
def test_what_is_not_overridden_follows(name: str, options: dict[str, Any], follows: dict[str, Any]):
    found = load_rulebook(name).with_options(options).options()
    assert {option: found[option] for option in follows} == follows


def test_overrides_add_up():
    book = load_rulebook("house").with_options({"big_blind": 20}).with_options({"ante": 1})
    assert (book.big_blind, book.small_blind, book.ante) == (20, 10, 1)
    assert book.with_options({}) == book


def test_buy_in_limits_count_big_blinds_or_antes():
    assert load_rulebook("house").min_buy_in_minor == 200
    assert load_rulebook("house").max_buy_in_minor == 1000
    assert load_rulebook("openers").min_buy_in_minor == 200
    assert load_rulebook("american").max_buy_in_minor == 100


def test_every_fault_is_named_at_once():
    found = faults("house", seats=12, big_blind=-1, colour="red", betting="mixed", max_draw=6, cut="yes", ante=True)
    assert sorted(found) == ["ante", "betting", "big_blind", "colour", "cut", "max_draw", "seats"]


@pytest.mark.parametrize(
    ("name", "options", "option"),
    [
        ("house", {"small_blind": 11}, "small_blind"),
        ("house", {"first_round": "check_or_open", "ante": 1}, "big_blind"),
        ("house", {"openers": "QQ"}, "openers"),
        ("house", {"openers": "QK"}, "openers"),
        ("house", {"openers": 22}, "openers"),
        ("house", {"big_blind": 0}, "big_blind"),
        ("openers", {"ante": 0}, "openers"),
        ("openers", {"ante": 0}, "ante"),
        ("openers", {"max_draw": 5}, "max_draw"),
        ("american", {"spread_max": 2}, "spread_max"),
        ("american", {"missed_draw": "stand_pat_no_raise"}, "missed_draw"),
        ("american", {"second_round_all_checked": "pass_out"}, "second_round_all_checked"),
        ("american", {"ante": 0}, "ante"),
        ("casadela", {"small_bet": 500, "big_blind": 400}, "big_blind"),
        ("casadela", {"small_bet": 500, "big_bet": 900}, "big_bet"),
        ("openers", {"betting": "fixed_limit", "small_bet": 0}, "small_bet"),
        ("house", {"big_blind": 2**62}, "max_buy_in"),
        ("house", {"big_blind": 2**63}, "big_blind"),
        ("house", {"min_buy_in": 200}, "min_buy_in"),
        ("house", {"seats": 1}, "seats"),
        ("house", {"seats": 6.0}, "seats"),
    ],
)
def test_contradictions_are_refused(name: str, options: dict[str, Any], option: str):
    assert option in faults(name, **options)


def test_a_first_drawer_could_never_run_out_of_cards():
    for seats in range(2, 10):
        assert load_rulebook("openers").with_options({"seats": seats}).seats == seats
    assert 52 - 5 * 9 >= 5 + 1


def test_an_unknown_rulebook_is_told_those_there_are():
    with pytest.raises(RulebookUnknown, match="american, casadela, clocked, house, openers"):
        load_rulebook("holdem")
    with pytest.raises(RulebookUnknown):
        load_rulebook("../rulebooks/house")


FIFTH = """
name = "lowland"
[titles]
en = "Lowland"
[texts]
en = "An ante and a spread, jacks to open, four cards for one, odd chips stay."
[options]
seats = 5
ante = 2
betting = "spread_limit"
spread_min = 2
spread_max = 8
first_round = "check_or_open"
openers = "JJ"
second_round = "bet_or_fold"
max_draw = 4
single_four_card_draw = true
reshuffle = "mixed"
losers = "show_all"
odd_chips = "next_pot"
bets_per_round = 3
button_after_pass_out = "moves"
"""


def test_a_new_rulebook_needs_a_toml_file_only(tmp_path: Path):
    (tmp_path / "lowland.toml").write_text(FIFTH)
    assert [book.name for book in list_rulebooks(tmp_path)] == [
        "american", "casadela", "clocked", "house", "lowland", "openers",
    ]  # fmt: skip
    assert load_rulebook("lowland", tmp_path).openers == "JJ"
    scenario = {
        "rulebook": "lowland",
        "stacks": {"1": 100, "2": 100, "3": 100},
        "button": 1,
        "hands": {"1": "As Ah Kd Kc 3d", "2": "Ts Th 9c 5d 2h", "3": "Js Jh 6d 4c 2d"},
        "stub": "5s 6s 7s 8s 8d",
        "script": [
            {"seat": 2, "do": "bet", "to": 3, "refused": "OPENERS_REQUIRED"},
            {"seat": 2, "do": "check"},
            {"expect": {"legal": {"fold": False, "check": True, "call": None, "bet": [3, 8], "raise": None}}},
            {"seat": 3, "do": "bet", "to": 3},
            {"seat": 1, "do": "call"},
            {"seat": 2, "do": "fold"},
            {"seat": 3, "do": "discard", "cards": ["Jh", "6d", "4c", "2d"]},
            {"expect": {"hand": {"3": "Js 5s 6s 7s"}, "legal": {"max_discards": 3}}},
            {"seat": 1, "do": "discard", "cards": ["3d"]},
            {"expect": {"hand": {"1": "As Ah Kd Kc 8s", "3": "Js 5s 6s 7s 8d"}, "to_act": 3}},
            {"seat": 3, "do": "check", "refused": "CANNOT_CHECK"},
            {"seat": 3, "do": "bet", "to": 8, "refused": "ABOVE_MAXIMUM"},
            {"seat": 3, "do": "bet", "to": 7},
            {"seat": 1, "do": "call"},
        ],
        "expect": {"pots": [{"amount": 26, "winners": {"1": 26}}], "shown": [3, 1], "button": 2},
    }
    assert run_scenario(json.loads(json.dumps(scenario)), tmp_path) == []


def test_faults_of_a_file_are_named_with_its_options(tmp_path: Path):
    text = FIFTH.replace('name = "lowland"', 'name = "highland"\nauthor = "me"').replace("seats = 5", "seats = 50")
    (tmp_path / "lowland.toml").write_text(text.replace('en = "Lowland"', "en = 5"))
    with pytest.raises(RulebookInvalid) as caught:
        load_rulebook("lowland", tmp_path)
    assert {fault.option for fault in caught.value.faults} >= {"author", "name", "titles.en", "seats"}
    (tmp_path / "lowland.toml").write_text("name = ")
    with pytest.raises(RulebookInvalid, match="not TOML"):
        load_rulebook("lowland", tmp_path)
    (tmp_path / "lowland.toml").write_text("options = 3")
    with pytest.raises(RulebookInvalid, match="not a table"):
        load_rulebook("lowland", tmp_path)


def test_no_rule_depends_on_a_rulebook_s_name():
    folder = Path(__file__).parents[3] / "services" / "rules"
    names = {book.name for book in list_rulebooks()} - {"openers"}
    for path in folder.glob("*.py"):
        text = path.read_text()
        assert not [name for name in names if f'"{name}"' in text], path.name


@pytest.mark.parametrize(("option", "least", "most"), [(option, *bounds) for option, bounds in RANGES.items()])
def test_numbers_are_taken_up_to_their_bounds_and_no_further(option: str, least: int, most: int):
    assert fault_of(option, least) is None
    assert fault_of(option, most) is None
    assert str(fault_of(option, least - 1)) == (
        f"{option}: {least - 1} is out of range; a whole number from {least} to {most}"
    )
    assert fault_of(option, most + 1) is not None


def test_bounds_of_options():
    assert RANGES["seats"] == (2, 9)
    assert RANGES["max_draw"] == (0, 5)
    assert RANGES["rake_basis_points"] == (0, 10_000)
    assert RANGES["chip_unit"][0] == RANGES["min_buy_in"][0] == RANGES["action_clock_ms"][0] == 1
    assert {option for option, (least, _) in RANGES.items() if least == 0} == {
        *("ante", "small_blind", "big_blind", "small_bet", "big_bet", "spread_min", "spread_max"),
        *("bets_per_round", "max_draw", "time_bank_ms", "time_bank_growth_ms", "rake_basis_points", "rake_cap"),
    }


def test_a_full_table_s_stacks_stay_within_64_bits():
    most = (2**63 - 1) // (6 * 100)
    assert load_rulebook("house").with_options({"big_blind": most - 1}).big_blind == most - 1
    assert "max_buy_in" in faults("house", big_blind=most + 1)


def test_every_option_is_a_field():
    assert set(OPTION_NAMES) == set(Rulebook.__struct_fields__) - {"name", "titles", "texts", "given"}
