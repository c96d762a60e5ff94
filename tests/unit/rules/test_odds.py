"""Odds of a draw: every exact case, and what the handbook says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from services.cli.odds import odds_command
from services.rules.cards import parse_cards
from services.rules.odds import draw_odds, handbook, odds_against, two_pair_split

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "odds.json").read_text())
ACE = 12


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: f"{''.join(case['hand'])}-keep{len(case['keep'])}")
def test_exact_counts(case: dict[str, Any]):
    odds = draw_odds(parse_cards(case["hand"]), parse_cards(case["keep"]))
    assert (odds.draw, odds.total, odds.counts) == (case["draw"], case["total"], case["counts"])


def test_aces_up():
    case = GOLDEN["aces_up"]
    split = two_pair_split(parse_cards(case["hand"]), parse_cards(case["keep"]), ACE)
    assert split == (case["two_pair_with_aces"], case["two_pair_without"])


@pytest.mark.parametrize(
    ("keep", "drawn", "figures"),
    [
        ("9c 9d", "6h 4s 2c", {"two_pair": 5, "three_of_a_kind": 8, "full_house": 100, "four_of_a_kind": 360}),
        ("9c 9d 7h 7s", "2c", {"full_house": 11}),
        ("8c 8d 8h", "Ks 3c", {"full_house": 16, "four_of_a_kind": 23}),
        ("8c 8d 8h Ks", "3c", {"full_house": 15, "four_of_a_kind": 50}),
        ("5c 6d 7h 8s", "Kc", {"straight": 5}),
        ("5c 6d 7h 9s", "Kc", {"straight": 11}),
        ("Ac 2d 3h 4s", "Kc", {"straight": 11}),
        ("Jc Qd Kh As", "4c", {"straight": 11}),
        ("Ah Jh 7h 3h", "9c", {"flush": 5}),
        ("5h 6h 7h 8h", "Kc", {"straight_flush": 23}),
        ("5h 6h 7h 9h", "Kc", {"straight_flush": 50}),
        ("9c 9d Kh", "6s 4c", {}),
    ],
)
def test_handbook_figures(keep: str, drawn: str, figures: dict[str, int]):
    assert handbook(parse_cards(f"{keep} {drawn}"), parse_cards(keep)) == figures


def test_handbook_pair_and_ace():
    figures = handbook(parse_cards("9c 9d Ah 6s 4c"), parse_cards("9c 9d Ah"))
    assert figures["two_pair_with_aces"] == 5
    assert round(odds_against(126, 1081), 1) == 7.6


def test_odds_against_the_impossible_are_infinite():
    assert odds_against(0, 47) == float("inf")
    assert draw_odds(parse_cards("9c 9d 9h 9s 4c"), parse_cards("9c 9d 9h 9s")).against("pair") == float("inf")


@pytest.mark.parametrize(("hand", "keep"), [("9c 9d", "9c"), ("9c 9c 2d 3d 4d", ""), ("9c 8c 2d 3d 4d", "As")])
def test_other_input_is_an_error(hand: str, keep: str):
    with pytest.raises(ValueError, match="hand"):
        draw_odds(parse_cards(hand), parse_cards(keep))


def test_command_shows_exact_counts_and_the_handbook():
    result = CliRunner().invoke(odds_command, ["9c 9d Ah 6s 4c", "--keep", "9c 9d Ah"])
    assert result.exit_code == 0
    assert "keep 9c 9d Ah, draw 2: 1081 draws" in result.output
    assert ["full", "house", "9", "119.1", "to", "1", "120", "to", "1"] in [
        line.split() for line in result.output.splitlines()
    ]
    for words in (["9c9dAh6s4c", "--keep", "9c9dAh"], ["9c", "9d", "Ah", "6s", "4c", "--keep", "9c,9d,Ah"]):
        assert CliRunner().invoke(odds_command, words).output == result.output
    for words in (["9c 9d"], ["9c9dAh6s4"], ["9c9dAh6s4c", "--keep", "As"]):
        assert CliRunner().invoke(odds_command, words).exit_code == 2
