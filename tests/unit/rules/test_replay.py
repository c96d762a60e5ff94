"""Recorded hands: the engine accepts each action in its turn and comes to the recorded pot and winners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from services.cli.replay import RecordInvalid, replay_command, replay_file, replay_hand
from services.rules.rulebook import load_rulebook

# Hands that were really played are not part of the repository; where they lie beside it, all must agree.
REAL_HANDS = Path(__file__).parents[4] / "shared" / "real-hands" / "hands.jsonl"


def record(**changes: Any) -> dict[str, Any]:
    """A made-up hand in the format of the recorded ones."""
    return {
        "id": "made-up",
        "network": "none",
        "limit": "fixed",
        "small_blind": 5,
        "big_blind": 10,
        "small_bet": 10,
        "big_bet": 20,
        "button": 1,
        "stacks": {"1": 200, "2": 200, "3": 200, "10": 100},
        "posts": [
            {"seat": 2, "kind": "small_blind", "amount": 5},
            {"seat": 3, "kind": "big_blind", "amount": 10},
            {"seat": 10, "kind": "big_blind", "amount": 10},
        ],
        "first_round": [
            {"seat": 10, "action": "check"},
            {"seat": 1, "action": "raise", "to": 20},
            {"seat": 2, "action": "fold"},
            {"seat": 3, "action": "call", "amount": 10},
            {"seat": 10, "action": "fold"},
        ],
        "draws": [{"seat": 3, "count": 2, "discarded": ["2s", "3s"]}, {"seat": 1, "count": 1}],
        "second_round": [
            {"seat": 3, "action": "check"},
            {"seat": 1, "action": "bet", "amount": 20},
            {"seat": 3, "action": "call", "amount": 20},
        ],
        "dealt": {"3": ["2s", "3s", "Ah", "Ad", "Kc"]},
        "final": {"1": ["Qc", "Qd", "4h", "5h", "6h"]},
        "shown": [1, 3],
        "mucked": [],
        "pot": 95,
        "rake": 4,
        "collected": {"3": 91},
        **changes,
    }


def test_a_recorded_hand_agrees():
    assert replay_hand(record(), load_rulebook("house")) == []
    assert replay_hand(record(), load_rulebook("casadela")) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"pot": 96}, "pot 96 recorded, 95 found"),
        ({"rake": 5}, "collected {3: 91} after a rake of 5 recorded, {3: 95} before rake found"),
        ({"shown": [3, 1]}, "shown [3, 1] recorded, [1, 3] found"),
        ({"mucked": [2]}, "mucked [2] recorded, [] found"),
        ({"second_round": [{"seat": 1, "action": "check"}]}, "refused in second_round: It is not this seat's turn."),
        ({"second_round": []}, "the hand is not over, it is in second_round"),
    ],
)
def test_what_differs_is_named(changes: dict[str, Any], difference: str):
    assert difference in replay_hand(record(**changes), load_rulebook("house"))


def test_a_record_of_another_shape_is_refused():
    with pytest.raises(RecordInvalid, match="unknown keys weather"):
        replay_hand(record(weather="fine"), load_rulebook("house"))
    with pytest.raises(RecordInvalid, match="drew 1 cards"):
        replay_hand(record(draws=[{"seat": 3, "count": 1, "discarded": ["2s", "3s"]}]), load_rulebook("house"))


def test_command_counts_what_agrees(tmp_path: Path):
    path = tmp_path / "hands.jsonl"
    path.write_text("\n".join((json.dumps(record()), "", json.dumps(record(id="other", pot=1)), "{")))
    result = CliRunner().invoke(replay_command, [str(path)])
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == "other: pot 1 recorded, 95 found"
    assert lines[1].startswith("line 4: not a record:")
    assert lines[2] == "1 of 3 agree"
    path.write_text(json.dumps(record()))
    result = CliRunner().invoke(replay_command, [str(path), "--rulebook", "casadela", "--limit", "fixed"])
    assert (result.exit_code, result.output) == (0, "1 of 1 agree\n")


@pytest.mark.parametrize(("name", "limit"), [("house", None), ("casadela", "fixed")])
def test_really_played_hands_agree_where_they_are_at_hand(name: str, limit: str | None):
    hands = list(replay_file(REAL_HANDS, load_rulebook(name), limit)) if REAL_HANDS.exists() else []
    assert [differences for _, differences in hands if differences] == []
    assert len(hands) in (0, 32, 35)


def test_a_file_that_is_no_record_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "hands.jsonl"
    nulls = dict.fromkeys(record())
    path.write_bytes(b"\xff\xfe\n" + json.dumps(nulls).encode() + b"\n[1]\n{}\n")
    done = CliRunner().invoke(replay_command, [str(path)])
    assert done.exit_code == 1
    assert [line.split(":")[1] for line in done.output.splitlines()[:4]] == [" not a record"] * 4
    assert done.output.splitlines()[-1] == "0 of 4 agree"


def test_an_empty_file_agrees_with_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hands.jsonl"
    path.write_text("")
    done = CliRunner().invoke(replay_command, [str(path)])
    assert (done.exit_code, done.output) == (1, "0 of 0 agree\n")


def test_an_unknown_rulebook_is_a_bad_option(tmp_path: Path) -> None:
    path = tmp_path / "hands.jsonl"
    path.write_text("")
    done = CliRunner().invoke(replay_command, ["--rulebook", "nope", str(path)])
    assert done.exit_code == 2
    assert "there is no rulebook 'nope'" in done.output
