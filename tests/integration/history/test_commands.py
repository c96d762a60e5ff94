"""`fivedraw hand` and `fivedraw hands` against a history service: lists, and files that others read."""

from __future__ import annotations

import asyncio
import json
import random
import tomllib

import pytest
import pytest_asyncio
from click.testing import CliRunner

from services.cli.hand import hand_command, hands_command
from services.cli.scenario import scenario_command
from services.history import store
from services.history.grpc_api import add_to
from services.history.names import hand_id
from services.history.reading import HandReader
from services.history.record import encode
from services.history.summary import summarise
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from tests.property.history import tracker_grammar
from tests.unit.history.played import SEALER, START_MS, play, void

HANDS = 8
STACKS = {1: 5000, 2: 5000, 3: 5000}


@pytest_asyncio.fixture
async def house(sqlite_url, make_settings, serve, token):
    """`await house.run(hands_command, "--table", "red", subject="p1", role="player")`."""
    opened = Database(sqlite_url)
    await opened.migrate("history")
    played = [
        play(random.Random(number), stacks=STACKS, hand=number, start_ms=START_MS + number * 60_000)
        for number in range(1, HANDS + 1)
    ]
    played.append(void(random.Random(9), stacks=STACKS, hand=HANDS + 1, start_ms=START_MS + 3_600_000))
    played.append(play(random.Random(10), "openers", stacks=STACKS, hand=1, table="tables/blue"))
    for each in played:
        await opened.write(store.insert_hand, summarise(each.key, each.record), encode(each.record), 1)
    reader = HandReader(opened, SEALER, SystemClock())
    server = await serve(make_settings(), lambda server: add_to(server, reader), name="history")

    class House:
        hands = played

        @staticmethod
        async def run(command, *arguments: str, subject: str = "p1", role: str = "player"):
            reach = ["--target", f"127.0.0.1:{server.port}", "--token", token(subject, role)]
            return await asyncio.to_thread(CliRunner().invoke, command, [*arguments, *reach])

    yield House
    await opened.close()


async def test_a_hand_is_named_in_three_ways(house) -> None:
    first = house.hands[0]
    names = ("tables/red/hands/1", "red/1", str(hand_id(first.key)))
    told = [await house.run(hand_command, name) for name in names]
    assert [each.exit_code for each in told] == [0, 0, 0], told[0].output
    assert len({each.output for each in told}) == 1
    assert told[0].output.startswith(f"Hand {hand_id(first.key)}: tables/red/hands/1 (Red)")


async def test_what_cannot_be_read_is_said_and_ends_with_status_1(house) -> None:
    for arguments, reason in (
        (("red/99",), "HAND_NOT_FOUND"),
        (("blue/1", "--format", "tracker"), "FORMAT_CANNOT_EXPRESS"),
        (("red/1", "--format", "scenario"), "PERMISSION_DENIED"),
    ):
        told = await house.run(hand_command, *arguments)
        assert told.exit_code == 1
        assert reason in told.output


async def test_a_list_is_newest_first_and_can_be_narrowed(house) -> None:
    told = await house.run(hands_command, "--table", "red", subject="op", role="operator")
    assert told.exit_code == 0, told.output
    listed = [line for line in told.output.splitlines() if "red/" in line]
    assert len(listed) == HANDS + 1
    assert "red/9" in listed[0]
    assert "void" in listed[0]
    pots = sorted(sum(pot.amount for pot in each.state.pots) for each in house.hands[:HANDS])
    told = await house.run(hands_command, "--table", "red", "--min-pot", str(pots[-2]), subject="op", role="operator")
    assert len([line for line in told.output.splitlines() if "red/" in line]) == 2
    told = await house.run(hands_command, "--rulebook", "openers", subject="op", role="operator")
    assert "blue/1" in told.output
    assert "red/" not in told.output


async def test_tracker_json_and_phh_files_hold_the_range(house, tmp_path) -> None:
    for form in ("tracker", "json", "phh"):
        out = tmp_path / form
        told = await house.run(hands_command, "--table", "red", "--format", form, "--out", str(out))
        assert told.exit_code == 0, told.output
        assert (
            f"{HANDS} hands written, 1 left out" if form == "tracker" else f"{HANDS + 1} hands written"
        ) in told.output
    hands = tracker_grammar.split((tmp_path / "tracker").read_text(encoding="utf-8"))
    found = [tracker_grammar.check(hand, "Player 1").hand_id for hand in hands]
    assert found == [hand_id(each.key) for each in house.hands[:HANDS]]
    lines = [json.loads(line) for line in (tmp_path / "json").read_text().splitlines()]
    assert [each["hand"] for each in lines] == list(range(1, HANDS + 2))
    assert len(tomllib.loads((tmp_path / "phh").read_text())) == HANDS + 1


@pytest.mark.parametrize("name", ["folder", "lines.jsonl"])
async def test_an_auditors_scenarios_are_files_that_pass(house, tmp_path, name: str) -> None:
    out = tmp_path / name
    arguments = ("--table", "red", "--format", "scenario", "--out", str(out))
    told = await house.run(hands_command, *arguments, subject="aud", role="auditor")
    assert told.exit_code == 0, told.output
    assert f"{HANDS} hands written, 1 left out" in told.output
    if out.is_dir():
        files = sorted(str(path) for path in out.glob("*.json"))
        assert len(files) == HANDS
        ran = await asyncio.to_thread(CliRunner().invoke, scenario_command, files)
        assert ran.exit_code == 0, ran.output
    else:
        assert len(out.read_text().splitlines()) == HANDS


async def test_limits_and_times_bound_a_file(house) -> None:
    told = await house.run(hands_command, "--table", "red", "--format", "json", "--limit", "3")
    assert "3 hands written" in told.output
    told = await house.run(hands_command, "--table", "red", "--format", "json", "--from", "2030-01-01")
    assert "0 hands written" in told.output
    told = await house.run(hands_command, "--out", "x")
    assert told.exit_code == 2
