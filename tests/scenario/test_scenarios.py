"""Every scenario file passes: those that show a rule, and the random ones of an independent implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from services.cli.scenario import ScenarioInvalid, run_file, run_scenario, scenario_command

FILES = Path(__file__).parent / "files"
ALL = sorted(FILES.glob("*.json")) + sorted((FILES / "random").glob("*.json"))


def test_there_are_320_scenarios() -> None:
    assert len(ALL) == 320


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_scenario_passes(path: Path) -> None:
    assert run_file(path) == []


def sample() -> dict[str, object]:
    return json.loads((FILES / "openers-one-four-card-draw.json").read_text())  # type: ignore[no-any-return]


def test_command_counts_and_names_what_differs(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(sample()))
    wrong = sample()
    wrong["expect"] = {"carry": 5}
    bad.write_text(json.dumps(wrong))
    result = CliRunner().invoke(scenario_command, [str(good), str(bad)])
    assert result.exit_code == 1
    assert result.output.splitlines() == [f"{bad}: end: carry: 5 expected, 0 found", "1 of 2 pass"]
    assert CliRunner().invoke(scenario_command, [str(good)]).exit_code == 0


def test_unknown_keys_are_an_error_that_names_them_all() -> None:
    scenario = sample()
    scenario["colour"] = 1
    scenario["script"][0]["speed"] = 2  # type: ignore[index]
    scenario["expect"]["luck"] = 3  # type: ignore[index]
    with pytest.raises(ScenarioInvalid) as caught:
        run_scenario(scenario)
    for key in ("colour", "speed", "luck"):
        assert f"unknown key {key!r}" in str(caught.value)


def test_a_reshuffled_card_that_may_not_be_there_is_an_error() -> None:
    scenario = json.loads((FILES / "stub-runs-short-six-seats.json").read_text())
    scenario["reshuffles"] = ["As"]
    with pytest.raises(ScenarioInvalid, match="reshuffle 1: As may not be there"):
        run_scenario(scenario)


def test_a_refusal_that_does_not_come_is_a_difference() -> None:
    scenario = sample()
    scenario["script"][0]["refused"] = "CANNOT_BET"  # type: ignore[index]
    assert run_scenario(scenario) == ["step 1: bet of seat 2: refused CANNOT_BET expected, None found"]


def test_a_file_that_is_no_scenario_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text("{")
    assert run_file(path)[0].startswith("cannot be read:")
    path.write_text("[]")
    assert run_file(path) == ["not a scenario: the file holds no JSON object"]
    for shapeless in ({"expect": []}, {"script": [3]}, {"stacks": {"x": 1, "y": 2}}, {"hands": 4}, {"button": "1"}):
        path.write_text(json.dumps({**sample(), **shapeless}))
        assert run_file(path)[0].startswith("not a scenario:")
    path.write_text("[" * 100_000)
    assert run_file(path) == ["cannot be read: nested too deep"]
    path.write_text(json.dumps({**sample(), "rulebook": "nobody"}))
    assert "there is no rulebook 'nobody'" in run_file(path)[0]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("stacks", {"1": 5.5, "2": 100}, "Expected `int`, got `str` - at `$.stacks[...]`"),
        ("stacks", {"1": 5.0, "2": 100}, "Expected `int`, got `str` - at `$.stacks[...]`"),
        ("stacks", {"1": True, "2": 100}, "Expected `int`, got `bool` - at `$.stacks[...]`"),
        ("button", 9, "button: 9 is no seat of stacks"),
        ("carry", -1, "carry: -1 is below zero"),
        ("script", [{"seat": 2, "do": "raise"}], "step 1: 'to' is missing"),
        ("script", [{"seat": 2, "do": "raise", "to": "x"}], "Expected `int`, got `str` - at `$.script[0].to`"),
        ("script", [{"expect": {"legal": 5}}], "Expected `object | null`, got `int` - at `$.script[0].expect.legal`"),
        ("stub", "2x", "'2x'"),
    ],
)
def test_a_value_of_a_wrong_kind_is_named_with_its_place(key: str, value: object, told: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        run_scenario({**sample(), key: value})
    assert told in str(caught.value)


def test_a_pot_is_compared_by_the_keys_given() -> None:
    scenario = sample()
    pots = scenario["expect"]["pots"]  # type: ignore[index]
    scenario["expect"]["pots"] = [{"amount": pot["amount"]} for pot in pots]  # type: ignore[index]
    assert run_scenario(scenario) == []
    scenario["expect"]["pots"][0]["amount"] += 1  # type: ignore[index]
    assert len(run_scenario(scenario)) == 1
