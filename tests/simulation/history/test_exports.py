"""500 hands of each limit, played through the whole house, in the formats that others read."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field

import jsonschema
import pytest
from fivedraw.history.v1 import history_service_pb2 as pb

from services.cli.scenario import run_scenario
from services.history.formats import structured
from services.runtime.virtual import run_virtual
from tests.property.history import tracker_grammar
from tests.simulation.history.rooms import AUDITOR, ROOMS, Rooms

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

HANDS = 500
# The owner of an export leaves the table now and then, so more are played than its file must hold.
HANDS_PLAYED = 640
SEED = 7
SCHEMA_SAMPLE = 40
# What a file of so many hands must hold at least, by what the grammar found in them.
EVERYWHERE = {
    "ante": HANDS,
    "rake": 300,
    "all-in": 40,
    "side pots": 40,
    "uncalled": 40,
    "before the draw": 12,
    "has timed out": 60,
    "reshuffled": 20,
    "posts both": 3,
}


@dataclass
class Exports:
    """A room's files: the owner's tracker text and JSON, the auditor's scenarios, JSON and TOML."""

    owner: str
    player: str
    tracker: str = ""
    own: list[dict] = field(default_factory=list)
    scenarios: list[dict] = field(default_factory=list)
    whole: dict[str, dict] = field(default_factory=dict)
    toml: str = ""


@functools.cache
def exports() -> dict[str, Exports]:
    """All rooms' files; played once for all tests of this file."""
    found: dict[str, Exports] = {}

    async def main() -> None:
        rooms = Rooms(SEED)
        await rooms.play(ROOMS, HANDS_PLAYED)
        for room in ROOMS:
            guest = rooms.guests[room.name][0]
            made = found[room.name] = Exports(guest.identity.id, guest.identity.player)
            assert guest.unexpected == []
            made.tracker = await rooms.export(guest.identity, room.name, pb.HAND_FORMAT_TRACKER)
            made.toml = await rooms.export(guest.identity, room.name, pb.HAND_FORMAT_PHH)
            own = await rooms.export(guest.identity, room.name, pb.HAND_FORMAT_JSON)
            made.own = [json.loads(line) for line in own.splitlines()]
            scenarios = await rooms.export(AUDITOR, room.name, pb.HAND_FORMAT_SCENARIO)
            made.scenarios = [json.loads(line) for line in scenarios.splitlines()]
            for line in (await rooms.export(AUDITOR, room.name, pb.HAND_FORMAT_JSON)).splitlines():
                hand = json.loads(line)
                made.whole[hand["hand_id"]] = hand
        await rooms.house.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "left behind by the house"

    run_virtual(main())
    return found


@pytest.fixture(params=[room.name for room in ROOMS])
def room(request: pytest.FixtureRequest) -> str:
    return request.param


def test_every_hand_of_a_tracker_file_parses_and_adds_up(room: str) -> None:
    made = exports()[room]
    has: Counter[str] = Counter()
    numbers = []
    for hand in tracker_grammar.split(made.tracker):
        found = tracker_grammar.check(hand, made.owner)
        whole = made.whole[str(found.hand_id)]
        assert found.pot == sum(pot["amount_minor"] for pot in whole["pots"])
        assert found.rake == whole["rake_minor"]
        numbers.append(found.hand_id)
        has.update(found.has)
    assert len(numbers) >= HANDS
    assert len(set(numbers)) == len(numbers)
    wanted = EVERYWHERE | ({"capped": 40} if room == "fixed-limit" else {})
    assert {what: has[what] for what, least in wanted.items() if has[what] < least} == {}, has


def test_every_scenario_file_passes(room: str) -> None:
    made = exports()[room]
    assert len(made.scenarios) >= HANDS
    assert [each["name"] for each in made.scenarios if run_scenario(each)] == []
    # All that was played is there, but for hands in which a dead blind took a stack's last chip.
    told = {each["name"] for each in made.scenarios}
    left_out = [hand for hand_id, hand in made.whole.items() if f"hand-{hand_id}" not in told]
    assert all(_has_dead_blind(hand) for hand in left_out)
    assert len(made.whole) >= HANDS_PLAYED


def test_no_file_of_the_owners_holds_a_card_that_it_may_not_see(room: str) -> None:
    made = exports()[room]
    tables = tomllib.loads(made.toml)
    tracker = {int(re.match(r"PokerStars Hand #(\d+)", hand)[1]): hand for hand in tracker_grammar.split(made.tracker)}
    for hand in made.own:
        allowed = _allowed(made.whole[hand["hand_id"]], made.player)
        texts = (json.dumps(hand), tracker[int(hand["hand_id"])], json.dumps(tables[hand["hand_id"]]))
        for text in texts:
            assert _cards(text) <= allowed, hand["name"]


def test_structured_json_follows_the_published_schema(room: str) -> None:
    made = exports()[room]
    validator = jsonschema.Draft202012Validator(structured.schema())
    for hand in [*made.own[:SCHEMA_SAMPLE], *list(made.whole.values())[:SCHEMA_SAMPLE]]:
        validator.validate(hand)


def _has_dead_blind(hand: dict) -> bool:
    posts = (event["body"] for event in hand["events"] if event["type"] == "forced_bet_posted")
    return any(post["kind"] == "dead_blind" for post in posts)


def _allowed(whole: dict, player: str) -> set[str]:
    """What RULES 3.8 gives to one who was dealt in, from the hand as an auditor sees it."""
    allowed: set[str] = set()
    for seat in whole["seats"]:
        if seat["player"] == player:
            allowed.update(seat["dealt"], seat["drawn"])
        elif seat["shown"] or seat["mucked"]:
            allowed.update(seat["final_cards"])
    return allowed


def _cards(text: str) -> set[str]:
    """Every card that stands in a text, cards without a space between them too; hashes, which are hex, taken out."""
    without_hashes = re.sub(r"\b(?:[0-9a-f]{2}){16,}\b", "", text)
    runs = re.findall(r"(?<![A-Za-z0-9-])(?:[2-9TJQKA][cdhs])+(?![A-Za-z0-9-])", without_hashes)
    return {run[place : place + 2] for run in runs for place in range(0, len(run), 2)}
